//! Finds messages in a store by words and by meaning, narrowed by filters, and shows the context of the best one.
//!
//!     cargo run --example search -- sessions.sqlite how are payments retried

#![allow(clippy::print_stdout, reason = "an example shows what it finds")]

use std::env;

use amplifier_session_storage::{
    OpenOptions, Result, Scope, embedding, identity,
    model::{ContentType, UserId},
    open,
    search::{SearchFilter, SearchOptions, SessionFilter},
};

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let file = arguments.next().unwrap_or_else(|| "sessions.sqlite".to_owned());
    let query: Vec<String> = arguments.collect();
    let user = identity::Sources::from_env().user()?.user_id;
    run(&file, &query.join(" "), user).await
}

async fn run(file: &str, query: &str, user: UserId) -> Result<()> {
    let options = OpenOptions::default().with_embedding(embedding::provider("local")?);
    let storage = open(&format!("sqlite:{file}"), options).await?;

    // Every read names its scope: here, the user's own data.
    let scope = Scope::from(user);
    let talk = [ContentType::UserQuery, ContentType::AssistantResponse];
    let long_ones = SearchFilter::default().with_sessions(SessionFilter::default().with_min_turns(2));
    let options = SearchOptions::new(query)
        .with_content_types(talk.into_iter().collect())
        .with_filter(long_ones)
        .with_limit(3);
    let found = storage.search().search_transcripts(&scope, &options).await?;
    for result in &found.results {
        println!("{:.2} {} #{}: {}", result.score, result.session_id, result.sequence, result.snippet);
    }

    if let Some(best) = found.results.first() {
        let around =
            storage.reading().get_message_context(&scope, &best.session_id, best.sequence, 1, 1).await?;
        println!("\nAround the first, in \"{}\":", around.session.title());
        for message in around.messages {
            println!("{:>4} {}", message.sequence, message.role);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use amplifier_session_storage::{
        model::{HostId, UserId},
        sync::{NoProgress, SyncOptions, sync},
    };

    #[tokio::test]
    async fn it_finds_something_in_the_samples() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s.sqlite").display().to_string();
        let user = UserId::new("dana").unwrap();
        let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/samples");
        let options = SyncOptions::new(samples, user.clone(), HostId::new("laptop").unwrap());
        let storage = super::open(&format!("sqlite:{file}"), super::OpenOptions::default()).await.unwrap();
        sync(&storage, &options, &NoProgress).await.unwrap();
        super::run(&file, "how are payments retried", user).await.unwrap();
    }
}
