//! The conformance suite: what every storage backend promises, one function a promise.
//!
//! It tests what a backend can break: rows, filters, order, transactions, candidates, vectors, isolation, deletion,
//! concurrency. What `core` builds on top is the same on every backend; `tests/suite/storage` tests it on two of them.
//!
//! A backend's crate says how to open an empty store ([`Subject`]) and calls
//! [`conformance_suite!`](crate::conformance_suite) in its tests; each promise then shows by its name in the test runner.
//! A new behaviour enters here before it enters a backend.
//!
//! ```
//! use amplifier_session_testkit::{MemoryBackend, conformance_suite};
//!
//! // For stores in files, this is an `InFolder`.
//! conformance_suite!(MemoryBackend::new());
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "this is a test suite: a promise that is not kept is a panic"
)]

pub mod concurrency;
pub mod deletion;
pub mod event_search;
pub mod events;
pub mod filters;
pub mod generations;
pub mod isolation;
pub mod messages;
pub mod meta;
pub mod renaming;
pub mod scopes;
pub mod search_text;
pub mod search_vectors;
pub mod session_lists;
pub mod sessions;
pub mod vectors;

use std::sync::Arc;

use crate::{Store, Subject};

/// Opens the store of `subject` and runs one promise to its end.
///
/// # Panics
///
/// When the promise is not kept.
pub fn check(subject: impl Subject + 'static, promise: impl AsyncFnOnce(Store)) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    // The subject is dropped last and outside of the runtime: it may have to clean up.
    let subject: Arc<dyn Subject> = Arc::new(subject);
    let run = async { promise(Store::open(subject.clone()).await).await };
    runtime.expect("a runtime can be built").block_on(run);
}

/// Makes one test of every promise; the argument is an expression that builds a [`Subject`], new for each test. With
/// `ignore = "why"` after it, the tests run only on demand.
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
            meta: [
                meta_names_the_version_and_the_writer,
                meta_values_are_compared_and_swapped,
                a_store_says_where_it_is,
            ]
            sessions: [
                all_fields_of_a_session_come_back,
                metadata_comes_back_byte_for_byte,
                what_a_change_does_not_name_stays,
                a_write_of_a_stale_version_is_a_conflict,
                sessions_are_written_together_as_each_alone,
                every_write_changes_the_version,
                rows_follow_their_session_to_another_project,
                another_handle_sees_what_was_written,
                what_is_unknown_is_empty_and_no_error,
                sync_states_are_listed_in_order,
                all_ids_of_a_scope_are_given_with_their_parents,
                rows_of_a_session_are_counted,
            ]
            session_lists: [
                sessions_are_listed_newest_first_in_pages,
                each_condition_narrows_the_list,
                sessions_that_are_left_out_are_not_listed,
                names_in_lists_are_plain_text,
                words_of_title_and_description_are_found,
                conditions_of_lists_hold_together,
            ]
            messages: [
                lines_come_back_byte_for_byte,
                broken_unicode_is_kept_and_searched_around,
                a_large_message_is_kept_whole,
                all_fields_of_a_message_come_back,
                a_long_session_is_complete,
                rows_are_read_in_order_from_a_sequence_on,
                messages_are_read_by_their_places,
                rows_are_cut_before_they_are_put,
                a_retimed_message_keeps_everything_else,
                searches_follow_a_retimed_message,
                messages_are_counted_by_day_and_role,
            ]
            events: [
                lines_come_back_byte_for_byte,
                all_fields_of_an_event_come_back,
                a_changed_line_changes_that_event_alone,
                event_ids_are_unique_to_a_user,
                events_are_found_by_id,
                events_tell_times_as_their_fields_do,
                events_are_counted_as_one_by_one,
                sums_of_tokens_do_not_overflow,
            ]
            event_search: [
                every_filter_of_events_equals_brute_force,
                pages_of_events_make_the_whole_list,
                events_are_found_by_what_they_say,
                names_of_events_are_plain_text,
                the_category_stands_before_the_colon,
                events_are_found_as_they_are_now,
            ]
            vectors: [
                a_message_that_is_put_loses_its_vectors,
                vectors_of_another_line_are_not_stored,
                vectors_are_only_stored_in_their_space,
                vectors_replace_those_of_the_message,
                vectors_come_back_as_they_were,
                messages_with_pending_vectors_are_listed_in_order,
                texts_with_vectors_are_listed_in_order,
                a_text_of_no_words_is_near_to_nothing,
                texts_that_are_read_otherwise_are_embedded_again,
            ]
            generations: [
                a_rebuild_with_another_model_is_searched_once_it_is_complete,
                messages_that_come_during_a_rebuild_are_part_of_it,
                a_rebuild_that_is_given_up_leaves_nothing,
                vectors_are_made_anew_with_the_same_model,
                failures_are_tried_again_when_asked_for,
                vectors_are_counted_by_generation,
                vectors_of_an_unknown_generation_are_refused,
                a_rebuild_leaves_no_word_of_the_generation_before,
            ]
            search_text: [
                accents_and_case_make_no_difference,
                long_identifiers_are_found,
                candidates_are_scored_by_bm25,
                each_text_of_a_message_is_a_candidate,
                a_message_is_found_by_what_it_says_now,
                updating_the_index_changes_no_answer,
                a_committed_message_is_found_at_once,
            ]
            search_vectors: [
                it_agrees_with_brute_force,
                candidates_are_exact,
                changed_and_removed_messages_are_not_near,
                vectors_of_another_handle_are_near_at_once,
            ]
            filters: [
                every_filter_equals_brute_force,
                a_session_is_filtered_by_what_it_is_now,
                filters_narrow_before_the_ranking,
                content_types_are_searched_as_asked,
                an_empty_store_has_no_results,
            ]
            isolation: [
                the_same_session_id_of_two_users_is_two_sessions,
                searches_stay_in_scope,
                pending_vectors_and_sync_states_are_each_users_own,
                names_are_plain_text,
                names_do_not_run_together,
            ]
            scopes: [
                every_read_shows_what_one_may_see,
                sharing_takes_effect_at_once,
                what_follows_in_a_shared_session_is_found,
                groups_without_a_name_match_nothing,
                a_group_counts_for_its_own_visibility_alone,
                names_of_groups_are_plain_text,
                a_filter_on_a_session_shows_no_private_one,
            ]
            deletion: [
                no_read_shows_a_deleted_session,
                the_same_words_elsewhere_are_still_found,
                a_session_that_comes_again_begins_anew,
                deletions_are_remembered,
                deletions_follow_a_new_name,
            ]
            renaming: [
                everything_follows_the_new_name,
                names_with_the_same_session_stay_apart,
                nobody_is_renamed_without_harm,
            ]
            concurrency: [
                tasks_on_sessions_of_their_own,
                tasks_with_the_same_lines,
                tasks_with_different_lines,
                tasks_that_append,
                the_second_of_two_writers_meets_a_conflict,
                readers_see_whole_writes,
                searching_while_others_write,
                an_abandoned_sync_is_completed_by_the_next,
            ]
        }
    };
}

/// Makes tests of the named promises: what [`conformance_suite!`] is made of.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_tests {
    (@with $attributes:tt $subject:expr; $($group:ident: [$($promise:ident),* $(,)?])*) => {
        $crate::conformance_tests! { @groups $attributes $subject; $($group [$($promise)*])* }
    };
    (@groups $attributes:tt $subject:expr; ) => {};
    (@groups $attributes:tt $subject:expr; $group:ident [$($promise:ident)*] $($rest:tt)*) => {
        mod $group {
            #[allow(unused_imports, reason = "the subject may be built of names of the module outside")]
            use super::*;

            $crate::conformance_tests! { @tests $attributes $subject; $group $($promise)* }
        }
        $crate::conformance_tests! { @groups $attributes $subject; $($rest)* }
    };
    (@tests $attributes:tt $subject:expr; $group:ident) => {};
    (@tests [$($attribute:meta)?] $subject:expr; $group:ident $promise:ident $($rest:ident)*) => {
        #[test]
        $(#[$attribute])?
        fn $promise() {
            $crate::conformance::check($subject, $crate::conformance::$group::$promise);
        }
        $crate::conformance_tests! { @tests [$($attribute)?] $subject; $group $($rest)* }
    };
    ($subject:expr; $($groups:tt)*) => {
        $crate::conformance_tests! { @with [] $subject; $($groups)* }
    };
}
