//! `sessions`: lists sessions, newest first or in another order.

use amplifier_session_api::{
    ApiAnswer,
    operations::sessions::{SessionsRequest, SessionsResponse},
};

use amplifier_session_storage::storage::SessionOrder;

use super::superseded;
use crate::{
    app::App,
    args::SessionsArgs,
    failure::{Failure, Outcome, say},
    refresh,
    render::sessions::{self as render, ListOptions},
};

pub(super) async fn run(app: &mut App, args: SessionsArgs) -> Result<Outcome, Failure> {
    args.check()?;
    if args.superseded {
        return superseded::sessions(app, args).await;
    }
    let request = SessionsRequest {
        scope: app.global.scope.into(),
        text: args.text(),
        filter: args.filter.request(&args.narrow),
        sort: args.order(),
        tree: args.tree,
        limit: args.limit,
        short_ids: app.out.is_terminal() && !app.out.is_json(),
        ..SessionsRequest::default()
    };
    request.check(&app.now)?;
    let reader = app.reader().await?;
    let unread = refresh::before_reading(app, &reader, args.no_refresh).await;
    let ApiAnswer { mut response, notices } = reader.api(app).list(&request).await?;
    response.incomplete.extend(unread);
    app.say_notices(&notices);
    show(app, &response, args.tree, reader.names_owners())?;
    app.out.finish()?;
    let found = response.count();
    if response.has_more && found > 0 && !app.out.is_json() {
        let shown = if found == 1 { "session".to_owned() } else { format!("{found} sessions") };
        say("note", &format!("showing the {} {shown}; use --limit to show more", first_of(response.sort)));
    }
    Ok(Outcome::found(found > 0))
}

/// The word for the first sessions of an order.
fn first_of(order: SessionOrder) -> &'static str {
    match order {
        SessionOrder::Updated => "newest",
        SessionOrder::Cost => "most expensive",
        SessionOrder::Messages => "largest",
        SessionOrder::Duration => "longest",
    }
}

fn show(app: &mut App, response: &SessionsResponse, tree: bool, owners: bool) -> Result<(), Failure> {
    let App { out, now, .. } = app;
    if out.is_json() {
        return Ok(out.json(response)?);
    }
    let options = ListOptions { owners, sort: response.sort, short_ids: &response.short_ids, now };
    match (response.sessions.is_empty(), tree) {
        (true, _) => {}
        (false, true) => render::tree(out, &response.sessions, options)?,
        (false, false) => render::list(out, &response.sessions, options)?,
    }
    Ok(())
}
