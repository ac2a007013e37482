//! The account of the Azure CLI, from its profile file.

use std::path::Path;

use serde::Deserialize;

#[derive(Deserialize)]
struct Profile {
    #[serde(default)]
    subscriptions: Vec<Subscription>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Subscription {
    #[serde(default)]
    is_default: bool,
    user: Option<Account>,
}

#[derive(Deserialize)]
struct Account {
    name: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
}

impl Account {
    /// The name, if this is a person. A managed identity has the same name on every machine (`systemAssignedIdentity`),
    /// so different users would become one.
    fn person(self) -> Option<String> {
        self.kind.is_none_or(|kind| kind.eq_ignore_ascii_case("user")).then_some(self.name)?
    }
}

/// The user of the default subscription; `None` if nobody is signed in or the file can't be read.
pub(super) fn signed_in_user(profile: &Path) -> Option<String> {
    // The Azure CLI writes the file with a byte order mark.
    let text = std::fs::read_to_string(profile).ok()?;
    let profile: Profile = serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()?;
    profile.subscriptions.into_iter().find(|subscription| subscription.is_default)?.user?.person()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user_of(text: &str) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("azureProfile.json");
        std::fs::write(&file, text).unwrap();
        signed_in_user(&file)
    }

    #[test]
    fn the_default_subscription_names_the_user() {
        let profile = r#"{"installationId":"x","subscriptions":[
            {"id":"1","isDefault":false,"user":{"name":"other@example.com","type":"user"}},
            {"id":"2","isDefault":true,"user":{"name":"ana@example.com","type":"user"}}]}"#;
        assert_eq!(user_of(profile).as_deref(), Some("ana@example.com"));
        assert_eq!(user_of(&format!("\u{feff}{profile}")).as_deref(), Some("ana@example.com"));
    }

    #[test]
    fn without_a_signed_in_person_there_is_no_user() {
        for profile in [
            "",
            "{",
            "{}",
            r#"{"subscriptions":[]}"#,
            r#"{"subscriptions":[{"isDefault":true}]}"#,
            r#"{"subscriptions":[{"isDefault":false,"user":{"name":"ana@example.com"}}]}"#,
            r#"{"subscriptions":[{"isDefault":true,"user":{"name":"systemAssignedIdentity","type":"servicePrincipal"}}]}"#,
        ] {
            assert_eq!(user_of(profile), None, "{profile}");
        }
    }
}
