//! `config init`: creates a store.

use amplifier_session_storage::{StoreUrl, model::UserId, restrict_roles};
use serde::Serialize;

use crate::{
    app::{App, check_writable},
    args::InitArgs,
    failure::{Failure, Outcome, say},
    render::text::printable,
};

/// The result as JSON.
#[derive(Serialize)]
struct InitView<'a> {
    store: String,
    row_security: bool,
    roles: Vec<RoleView<'a>>,
}

/// The role of a user as JSON.
#[derive(Serialize)]
struct RoleView<'a> {
    user_id: &'a UserId,
    statements: &'a str,
}

pub(super) async fn run(app: &mut App, args: InitArgs) -> Result<Outcome, Failure> {
    let url = app.store_url()?;
    let roles = if args.with_rls {
        restricted(app, &url, &args.roles).await?
    } else {
        let storage = app.storage(&url, app.settings()?).await?;
        check_writable(&storage)?;
        Vec::new()
    };
    if app.out.is_json() {
        let roles = args.roles.iter().zip(&roles);
        let roles = roles.map(|(user_id, statements)| RoleView { user_id, statements }).collect();
        app.out.json(&InitView { store: url.to_string(), row_security: args.with_rls, roles })?;
    } else {
        for statements in &roles {
            let is_terminal = app.out.is_terminal();
            app.out.line(&if is_terminal { printable(statements) } else { statements.clone() })?;
        }
    }
    app.out.finish()?;
    say("note", &format!("{url} is ready"));
    if args.with_rls && roles.is_empty() {
        let program = app.program();
        say(
            "hint",
            &format!(
                "`{program} config init --with-rls --role USER` prints the statements that create a role"
            ),
        );
    }
    Ok(Outcome::Done)
}

async fn restricted(app: &App, url: &StoreUrl, users: &[UserId]) -> Result<Vec<String>, Failure> {
    if url.backend().restrict_roles.is_none() {
        let message = format!("{} stores have no row level security", url.backend().name);
        return Err(Failure::wrong_use(message, "use --with-rls with a store in PostgreSQL"));
    }
    Ok(restrict_roles(url, app.open_options()?, users.to_vec()).await?)
}
