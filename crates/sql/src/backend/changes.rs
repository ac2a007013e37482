//! The feed of changes.

use amplifier_session_core::{
    Result, Scope,
    backend::{ChangeCursor, ChangeHints, ChangePage, Changes},
};
use async_trait::async_trait;

use super::SqlBackend;
use crate::{backend::DerivedIndex, read};

#[async_trait]
impl<D: DerivedIndex> Changes for SqlBackend<D> {
    async fn changes(&self, scope: &Scope, after: Option<&ChangeCursor>, limit: usize) -> Result<ChangePage> {
        let (scope, after) = (scope.clone(), after.cloned());
        self.read_snapshot(move |reader| read::changes::page(reader, &scope, after.as_ref(), limit)).await
    }

    fn change_hints(&self) -> ChangeHints {
        self.1.hints(Some(D::LOOKS_FOR_CHANGES))
    }
}
