//! The conformance suite: one function for each rule that every storage backend must follow.
//!
//! It tests everything that a backend can get wrong: rows, filters, order, transactions, candidates, vectors,
//! isolation, deletion and concurrency. `tests/suite/storage` tests the logic of `core` on two backends.
//!
//! The crate of a backend implements [`Subject`] to open an empty store and calls
//! [`conformance_suite!`](crate::conformance_suite) in its tests. Each group of rules is a test that names those that
//! are broken. Add a new behaviour here before implementing it in a backend.
//!
//! ```
//! use amplifier_session_testkit::{MemoryBackend, conformance_suite};
//!
//! // For stores in files, this is an `InFolder`.
//! conformance_suite!(MemoryBackend::new());
//! ```

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a test suite panics if a promise is broken"
)]

pub mod changes;
pub mod concurrency;
pub mod deletion;
pub mod event_search;
pub mod events;
pub mod filters;
pub mod generations;
pub mod integrity;
pub mod isolation;
pub mod messages;
pub mod meta;
pub mod projects;
pub mod renaming;
pub mod rewinding;
pub mod scopes;
pub mod search_newest;
pub mod search_text;
pub mod search_vectors;
pub mod session_lists;
pub mod sessions;
pub mod superseded;
pub mod turns;
pub mod vectors;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
};

use amplifier_session_core::backend::StorageBackend;
use tokio::runtime::Runtime;

use crate::{
    store::{Store, Subject},
    users::Users,
};

/// Opens the store of `subject` and checks one rule.
///
/// # Panics
///
/// If the rule is broken.
pub fn check(subject: impl Subject + 'static, promise: impl AsyncFnOnce(Store)) {
    // Dropped last and outside the runtime, because it may have to clean up.
    let subject: Arc<dyn Subject> = Arc::new(subject);
    let run = async { promise(Store::open(subject.clone()).await).await };
    runtime(&Users::default()).block_on(run);
}

fn runtime(users: &Users) -> Runtime {
    let users = users.clone();
    users.enter();
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().on_thread_start(move || users.enter());
    builder.build().expect("a runtime can be built")
}

/// A rule and its test.
#[derive(Debug, Clone, Copy)]
pub struct Promise {
    /// The name of the function that checks it.
    pub name: &'static str,
    /// Whether it needs a store without rows of other tests: it is about all users, metadata, generations or files.
    pub alone: bool,
    /// Checks it.
    pub check: fn(Store) -> Pin<Box<dyn Future<Output = ()>>>,
}

/// Checks rules one after the other, in one store unless they need their own, and then reports all that are broken.
/// With `CONFORMANCE` in the environment, only those whose name contains its value.
///
/// # Panics
///
/// If a rule is broken.
pub fn check_group<S: Subject + 'static>(subject: impl Fn() -> S, promises: &[Promise]) {
    let only = std::env::var("CONFORMANCE").unwrap_or_default();
    let mut shared: Option<SharedStore> = None;
    let mut broken = Vec::new();
    for promise in promises.iter().filter(|promise| promise.name.contains(&only)) {
        println!("{}", promise.name);
        let kept = catch_unwind(AssertUnwindSafe(|| {
            if promise.alone {
                check(subject(), promise.check)
            } else {
                shared.get_or_insert_with(|| SharedStore::open(subject())).check(promise.check)
            }
        }));
        if kept.is_err() {
            println!("{}: broken", promise.name);
            broken.push(promise.name);
            // Its rows may break the next rules.
            let _ = catch_unwind(AssertUnwindSafe(|| shared = None));
        }
    }
    drop(shared);
    assert!(broken.is_empty(), "broken: {}", broken.join(", "));
}

/// A store in which rules are checked one after the other, each with other users.
struct SharedStore {
    users: Users,
    backend: Arc<dyn StorageBackend>,
    // Dropped in this order: the subject may have to clean up outside the runtime.
    runtime: Runtime,
    subject: Arc<dyn Subject>,
}

impl SharedStore {
    fn open(subject: impl Subject + 'static) -> Self {
        let (users, subject): (Users, Arc<dyn Subject>) = (Users::default(), Arc::new(subject));
        let runtime = runtime(&users);
        let backend = runtime.block_on(subject.open());
        Self { users, backend, runtime, subject }
    }

    fn check(&self, promise: fn(Store) -> Pin<Box<dyn Future<Output = ()>>>) {
        self.users.enter();
        self.users.renew();
        let store = Store::on(self.subject.clone(), self.backend.clone());
        self.runtime.block_on(promise(store));
    }
}

/// Creates a test for every group of rules, so that one process checks many. The argument is an expression that builds
/// a new [`Subject`]. With `ignore = "why"` after it, the tests run only on request.
#[macro_export]
macro_rules! conformance_suite {
    ($subject:expr) => {
        $crate::conformance_suite! { @all [] $subject }
    };
    ($subject:expr, ignore = $why:literal) => {
        $crate::conformance_suite! { @all [ignore = $why] $subject }
    };
    (@all $attributes:tt $subject:expr) => {
        $crate::conformance_tests! { @with $attributes $subject;
            meta: [] + [
                a_store_records_its_version_and_writer,
                meta_values_are_compared_and_swapped,
                a_store_reports_its_locations,
                files_are_private_to_their_owner,
            ]
            sessions: [
                all_fields_of_a_session_come_back,
                metadata_comes_back_byte_for_byte,
                a_change_leaves_everything_else_alone,
                a_write_of_a_stale_version_is_a_conflict,
                batched_writes_equal_single_writes,
                every_write_changes_the_version,
                rows_follow_their_session_to_another_project,
                writes_are_visible_through_other_handles_at_once,
                reads_of_unknown_rows_return_nothing,
                a_sync_state_is_replaced_as_a_whole,
                sync_states_are_listed_in_order,
                rows_of_a_session_are_counted,
            ] + [
                session_ids_are_listed_with_their_parents,
            ]
            session_lists: [
                each_list_condition_works_alone,
                excluded_sessions_are_not_listed,
                list_filters_compare_names_literally,
                titles_and_descriptions_are_searched,
                list_conditions_combine,
            ] + [
                sessions_are_listed_newest_first_in_pages,
                given_sessions_are_listed,
            ]
            messages: [
                lines_come_back_byte_for_byte,
                lines_in_other_formats_come_back_and_are_found,
                invalid_unicode_is_kept_and_does_not_break_searches,
                a_large_message_is_stored_completely,
                all_fields_of_a_message_come_back,
                a_long_session_is_complete,
                rows_are_read_in_order_from_a_start_sequence,
                messages_are_read_by_reference,
                rows_are_truncated_before_they_are_put,
                a_retimed_message_keeps_everything_else,
                searches_use_the_new_time_of_a_message,
            ] + [
                messages_are_counted_by_time_and_role,
            ]
            events: [
                lines_come_back_byte_for_byte,
                all_fields_of_an_event_come_back,
                a_changed_line_changes_only_its_event,
                event_ids_are_unique_to_a_user,
                events_are_found_by_id,
                event_times_agree_with_event_fields,
            ] + [
                token_sums_saturate,
                event_counts_equal_brute_force,
                what_a_log_has_twice_counts_once,
            ]
            event_search: [] + [
                the_category_is_the_type_before_the_colon,
                event_filters_compare_names_literally,
                event_searches_use_current_rows,
                every_event_filter_equals_brute_force,
                event_pages_add_up_to_the_whole_list,
                events_are_found_by_their_text,
            ]
            vectors: [
                a_rewritten_message_loses_its_vectors,
                vectors_of_changed_messages_are_not_stored,
                vectors_replace_those_of_the_message,
                vectors_come_back_bit_for_bit,
                vectors_of_texts_of_several_sessions_are_returned,
                texts_with_vectors_are_listed_in_order,
                a_zero_vector_is_stored_but_not_found,
                texts_changed_by_new_rules_are_embedded_again,
                texts_found_by_new_rules_are_embedded,
                output_by_the_rules_before_the_last_is_embedded_again,
                base64_is_neither_found_nor_embedded,
            ] + [
                messages_with_pending_vectors_are_listed_in_order,
                vectors_that_do_not_fit_the_space_are_refused,
            ]
            generations: [] + [
                a_rebuild_with_another_model_is_searched_once_it_is_complete,
                messages_written_during_a_rebuild_are_part_of_it,
                an_abandoned_rebuild_leaves_nothing,
                vectors_are_rebuilt_with_the_same_model,
                backfill_retries_failures,
                vectors_are_counted_by_generation,
                vectors_of_an_unknown_generation_are_refused,
                a_rebuild_removes_the_previous_generation,
            ]
            integrity: [
                failures_of_vectors_are_listed,
            ] + [
                a_store_equals_what_is_derived_from_it,
                a_rebuilt_index_equals_the_rows,
                an_index_behind_the_rows_is_no_difference,
            ]
            search_text: [
                accents_and_case_make_no_difference,
                long_identifiers_are_found,
                each_text_of_a_message_is_a_candidate,
                a_changed_message_is_found_by_its_new_text,
                updating_the_index_changes_no_results,
                a_committed_message_is_found_at_once,
                required_terms_narrow_the_candidates,
                phrases_narrow_the_candidates,
                phrases_are_found_as_they_are_written,
                a_phrase_is_found_among_many_messages_with_its_words,
                terms_are_found_by_patterns,
                terms_with_a_typo_are_found_or_refused,
                terms_of_deleted_sessions_are_gone,
            ] + [
                candidates_are_scored_by_bm25,
                scores_after_a_deletion_are_those_of_the_other_sessions,
            ]
            search_newest: [
                the_newest_messages_are_all_that_match,
                changed_and_removed_messages_are_not_found_by_their_fields,
                tools_narrow_the_candidates,
            ]
            search_vectors: [
                semantic_search_agrees_with_brute_force,
                candidates_are_exact,
                vectors_of_changed_and_removed_messages_are_not_found,
                vectors_of_another_handle_are_searched_at_once,
            ]
            filters: [
                only_requested_content_types_are_searched,
            ] + [
                every_search_filter_equals_brute_force,
                filters_use_the_current_session,
                filters_apply_before_ranking,
                sessions_are_excluded_by_user_and_id,
                a_repository_has_only_sessions_in_scope,
                an_empty_store_has_no_results,
            ]
            projects: [] + [
                several_projects_are_selected_in_every_read,
            ]
            isolation: [
                session_ids_are_literal,
                the_same_session_id_of_two_users_is_two_sessions,
                pending_vectors_and_sync_states_are_kept_per_user,
            ] + [
                searches_stay_in_scope,
                user_and_project_names_are_literal,
                keys_that_concatenate_to_the_same_text_are_distinct,
            ]
            scopes: [] + [
                every_read_returns_what_the_viewer_may_see,
                sharing_takes_effect_at_once,
                additions_to_a_shared_session_are_found,
                unnamed_groups_match_nothing,
                groups_apply_only_to_their_own_visibility,
                group_names_are_compared_literally,
                a_session_filter_reveals_no_private_session,
            ]
            deletion: [
                no_read_returns_a_deleted_session,
                many_sessions_are_deleted_at_once,
                only_the_expected_version_is_deleted,
                deletions_move_with_a_renamed_user,
            ] + [
                a_recreated_session_starts_empty,
                the_same_words_in_other_sessions_are_still_found,
                deletions_are_remembered,
            ]
            superseded: [
                lines_are_superseded_with_the_change_that_removes_them,
                superseded_lines_are_stored_once,
                superseded_lines_are_pruned,
                superseded_lines_are_deleted_with_their_session,
            ] + [
                superseded_lines_stay_in_scope,
                superseded_lines_are_listed_in_pages,
                superseded_lines_move_with_their_session,
            ]
            turns: [
                all_fields_of_the_vector_of_a_turn_come_back,
                the_vector_of_a_turn_is_pending_until_it_is_made,
                the_vector_of_a_changed_turn_is_pending,
                summaries_belong_to_a_line,
            ] + [
                turns_are_rebuilt_with_another_model,
                turns_follow_their_session,
                the_nearest_turns_are_exact,
                turns_stay_in_scope,
                summaries_are_listed_in_pages,
            ]
            rewinding: [
                a_rewind_removes_later_turns_and_nothing_else,
                an_abandoned_rewind_is_completed_by_the_next,
                a_rewind_during_a_sync_leaves_whole_turns,
            ]
            renaming: [
                users_with_the_same_session_id_are_not_merged,
                renames_without_effect_change_nothing,
            ] + [
                everything_moves_to_the_new_name,
            ]
            changes: [
                every_write_of_a_session_is_reported,
                pages_of_changes_add_up,
                renamed_users_are_reported,
                changes_stay_in_scope,
                a_private_session_is_not_mentioned,
                no_concurrent_change_is_missed,
                unknown_cursors_are_reset,
                waiting_readers_are_woken,
                waiting_readers_return_without_changes,
            ] + [
                readers_follow_random_changes,
            ]
            concurrency: [
                concurrent_writes_to_different_sessions_succeed,
                concurrent_syncs_of_the_same_lines_store_them_once,
                concurrent_syncs_of_different_lines_keep_one_transcript,
                concurrent_appends_lose_no_line,
                the_second_of_two_writers_gets_a_conflict,
                readers_see_whole_writes,
                searches_succeed_during_writes,
                an_abandoned_sync_is_completed_by_the_next,
            ]
        }
    };
}

/// Creates a test for each group of the named rules. [`conformance_suite!`] uses it.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_tests {
    (@with $attributes:tt $subject:expr; $($group:ident: $shared:tt $(+ $alone:tt)?)*) => {
        $($crate::conformance_tests! { @group $attributes $subject; $group $shared $($alone)? })*
    };
    (@group [$($attribute:meta)?] $subject:expr; $group:ident [$($shared:ident),* $(,)?] $([$($alone:ident),* $(,)?])?) => {
        #[test]
        $(#[$attribute])?
        fn $group() {
            $crate::conformance::check_group(|| $subject, &[
                $($crate::conformance_tests! { @promise false $group $shared },)*
                $($($crate::conformance_tests! { @promise true $group $alone },)*)?
            ]);
        }
    };
    (@promise $is_alone:literal $group:ident $promise:ident) => {
        $crate::conformance::Promise {
            name: stringify!($promise),
            alone: $is_alone,
            check: |store| Box::pin($crate::conformance::$group::$promise(store)),
        }
    };
    ($subject:expr; $($groups:tt)*) => {
        $crate::conformance_tests! { @with [] $subject; $($groups)* }
    };
}
