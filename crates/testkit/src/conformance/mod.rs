//! The conformance suite: what every storage backend promises, one function a promise.
//!
//! A backend's crate says how to open an empty store ([`Subject`]) and calls
//! [`conformance_suite!`](crate::conformance_suite) in its tests; each promise then shows by its name in the
//! test runner. A new behaviour enters here before it enters a backend.
//!
//! ```
//! use std::sync::Arc;
//! use amplifier_session_core::backend::StorageBackend;
//! use amplifier_session_testkit::{MemoryBackend, conformance::Subject};
//!
//! /// Stores in memory; for stores in files, a temporary folder would stand here.
//! #[derive(Default)]
//! struct InMemory(MemoryBackend);
//!
//! #[async_trait::async_trait]
//! impl Subject for InMemory {
//!     async fn open(&self) -> Arc<dyn StorageBackend> {
//!         Arc::new(self.0.clone())
//!     }
//!
//!     async fn open_again(&self) -> Arc<dyn StorageBackend> {
//!         self.open().await
//!     }
//! }
//!
//! amplifier_session_testkit::conformance_suite!(InMemory::default());
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "this is a test suite: a promise that is not kept is a panic"
)]

pub mod activity;
pub mod addresses;
pub mod archives;
pub mod backend_counts;
pub mod backend_rows;
pub mod backend_vectors;
pub mod concurrency;
pub mod context;
pub mod deletion;
pub mod edits;
pub mod embeddings;
pub mod event_search;
pub mod events;
pub mod filters;
pub mod generations;
pub mod isolation;
pub mod messages;
pub mod renaming;
mod samples;
pub mod scopes;
pub mod search_every_mode;
pub mod search_hybrid;
pub mod search_text;
pub mod search_vectors;
pub mod session_lists;
pub mod sessions;
pub mod statistics;
mod store;
pub mod sync_statistics;
pub mod times;
pub mod trees;
pub mod unclaimed;
pub mod vector_search;
pub mod vectors;

use std::sync::Arc;

use amplifier_session_core::backend::StorageBackend;
use async_trait::async_trait;

/// A kind of store under test. Each promise gets a subject of its own and opens one store with it.
#[async_trait]
pub trait Subject: Send + Sync {
    /// Opens the store, which does not exist yet and holds nothing. It must live as long as the subject.
    async fn open(&self) -> Arc<dyn StorageBackend>;

    /// Opens the same store a second time, as independent of the first handle as another process would be.
    async fn open_again(&self) -> Arc<dyn StorageBackend>;
}

/// Runs one promise to its end.
///
/// # Panics
///
/// When the promise is not kept.
pub fn check(promise: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime can be built").block_on(promise);
}

/// Makes one test of every promise; the argument is an expression that builds a [`Subject`], new for each
/// test. With `ignore = "why"` behind it, the tests run only when they are asked for.
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
            sessions: [
                all_fields_come_back,
                creating_an_existing_session_is_refused,
                an_unknown_session_is_not_found,
                metadata_comes_back_byte_for_byte,
                metadata_fills_the_fields,
                metadata_that_is_no_object_is_refused,
                session_ids_are_uuids_where_asked_for,
                sessions_are_listed_newest_first,
                pages_of_sessions_make_the_whole_list,
                lists_are_narrowed_by_project_and_time,
                prefixes_of_ids_are_plain_text,
                a_session_is_found_by_a_unique_prefix,
                an_id_of_several_users_is_ambiguous_to_everyone,
                statistics_count_what_is_stored,
                deleting_in_another_project_deletes_nothing,
                nothing_is_left_of_a_deleted_session,
                a_session_moves_to_another_project,
                the_first_user_is_pinned,
                another_handle_sees_what_was_written,
                metadata_changes_no_identity,
            ]
            addresses: [
                an_address_names_a_session_and_perhaps_a_line,
                latest_is_the_newest_session_of_the_reader,
                short_ids_are_unique_in_the_store,
                an_address_tells_a_session_from_its_sub_agents,
                a_project_is_found_by_a_unique_part,
                a_project_is_found_by_its_folder,
            ]
            session_lists: [
                each_filter_narrows_the_list,
                bundles_and_tags_are_plain_text,
                words_of_title_and_description_are_found,
                sessions_active_in_a_period_are_listed,
                children_of_a_session_are_listed,
                filters_of_lists_hold_together,
            ]
            edits: [
                an_edit_survives_every_later_sync,
                a_cleared_field_stays_empty,
                tags_are_added_and_removed,
                a_field_that_is_reset_follows_the_files_again,
                a_reset_changes_one_field_alone,
                an_edit_changes_nothing_else,
                a_missing_session_is_not_edited,
                an_edit_out_of_range_is_refused,
                edits_at_the_same_time_are_all_kept,
                the_first_sharing_is_remembered,
                sharing_with_nobody_in_particular_is_refused,
            ]
            trees: [
                the_whole_tree_is_shown,
                forks_and_sub_agents_are_told_apart,
                a_session_without_its_parent_is_the_top,
                a_circle_of_parents_ends,
                children_of_another_user_are_not_shown,
                a_long_line_of_sessions_is_shown_whole,
            ]
            activity: [
                users_are_listed_with_what_they_did,
                projects_are_listed_with_what_was_done_in_them,
                sessions_count_in_every_period_they_were_active,
            ]
            archives: [
                sessions_come_back_as_they_were,
                what_is_there_is_replaced_only_when_asked_for,
                a_broken_archive_leaves_whole_sessions_alone,
                events_of_other_sessions_are_left_to_them,
            ]
            messages: [
                lines_come_back_byte_for_byte,
                broken_unicode_is_kept_and_searched_around,
                a_large_message_is_kept_whole,
                times_are_brought_to_utc,
                a_missing_time_is_estimated_once,
                the_same_sync_twice_changes_nothing,
                a_changed_line_changes_that_message_alone,
                the_whole_transcript_removes_the_tail,
                lines_from_a_start_remove_nothing,
                a_gap_is_refused,
                a_bad_line_is_named_and_nothing_is_stored,
                every_role_is_taken,
                messages_without_text_owe_nothing,
                turns_are_numbered,
                a_new_turn_moves_those_behind_it,
                messages_are_read_in_parts,
                an_empty_transcript_removes_all_messages,
                the_first_prompt_follows_the_transcript,
                a_long_session_is_complete,
            ]
            times: [
                a_retimed_message_keeps_everything_else,
                searches_follow_a_retimed_message,
                events_tell_times_as_their_fields_do,
            ]
            events: [
                lines_come_back_byte_for_byte,
                lines_come_only_when_asked_for,
                fields_come_from_each_envelope,
                summaries_hold_no_payload,
                the_same_sync_twice_changes_nothing,
                a_changed_line_changes_that_event_alone,
                the_whole_log_removes_the_tail,
                a_gap_is_refused,
                a_bad_line_is_named_and_nothing_is_stored,
                events_are_read_in_parts,
                event_ids_are_unique_to_a_user,
                ids_that_look_derived_are_not_taken,
                less_of_events_is_kept_when_wanted,
                what_was_left_out_can_be_made_up_for,
                a_missing_time_is_estimated_once,
                summaries_of_other_rules_are_made_anew,
                events_and_messages_do_not_touch_each_other,
            ]
            event_search: [
                each_filter_narrows_the_events,
                filters_of_events_hold_together,
                names_of_events_are_plain_text,
                the_category_stands_before_the_colon,
                events_are_found_by_what_they_say,
                dots_in_types_are_colons,
                pages_of_events_make_the_whole_list,
                a_page_of_events_out_of_range_is_refused,
                a_search_of_events_stays_in_scope,
                filters_on_sessions_narrow_the_events,
                events_are_found_as_they_are_now,
                no_event_that_is_found_holds_a_payload,
            ]
            statistics: [
                sessions_are_counted_by_project_and_bundle,
                events_are_counted_by_type,
                uses_of_tools_are_counted_with_their_failures,
                models_are_counted_with_tokens_and_cost,
                costs_are_summed_exactly,
                a_model_call_counts_once,
                days_without_anything_are_gaps,
                days_are_counted_by_what_was_written_on_them,
                statistics_are_of_the_sessions_asked_for,
                statistics_are_of_the_period_asked_for,
                huge_numbers_of_tokens_do_not_overflow,
                token_numbers_that_make_no_sense_count_as_nothing,
                an_empty_store_counts_nothing,
            ]
            sync_statistics: [
                rows_are_told_with_their_ends,
                a_good_session_has_no_gaps,
                skipped_lines_are_told,
                owed_vectors_are_counted,
                a_session_without_rows_has_none,
            ]
            vectors: [
                every_text_has_its_vector,
                a_long_text_has_a_vector_a_chunk,
                a_shorter_text_leaves_no_chunk_behind,
                tool_output_is_embedded_up_to_its_limit,
                texts_that_are_read_otherwise_are_embedded_again,
                a_failed_embedding_is_made_up_for,
                a_provider_that_fails_midway_leaves_whole_messages,
                a_wrong_answer_stores_nothing,
                a_wrong_answer_to_a_query_is_no_result,
                another_space_is_refused,
                vectors_are_made_once_there_is_a_provider,
                a_text_of_no_words_is_near_to_nothing,
                vectors_of_a_message_changed_meanwhile_are_dropped,
            ]
            embeddings: [
                vectors_that_are_handed_in_are_found,
                vectors_that_are_handed_in_are_brought_to_unit_length,
                vectors_that_do_not_fit_are_refused,
                vectors_of_another_space_are_refused,
                vectors_that_are_handed_in_replace_those_of_the_message,
                texts_that_have_vectors_are_told,
                a_changed_line_loses_what_was_handed_in,
                vectors_are_handed_in_for_a_session_that_is_there,
                vectors_come_in_with_their_lines,
                parts_of_a_text_have_vectors_of_their_own,
                vectors_that_do_not_fit_their_lines_store_nothing,
            ]
            unclaimed: [
                a_model_that_fails_reserves_nothing,
                a_claim_without_vectors_gives_way,
                a_text_that_nothing_is_made_of_fails_alone,
                a_service_that_makes_nothing_of_everything_marks_nothing,
                a_search_tells_what_it_could_not_look_at,
                a_store_without_vectors_misses_all,
            ]
            generations: [
                a_rebuild_with_another_model_is_searched_once_it_is_complete,
                a_rebuild_that_breaks_off_goes_on_where_it_was,
                messages_that_come_during_a_rebuild_are_part_of_it,
                a_rebuild_that_is_given_up_leaves_nothing,
                another_rebuild_takes_the_place_of_the_first,
                vectors_are_made_anew_with_the_same_model,
                a_part_of_the_store_is_made_anew,
                a_refused_text_fails_alone,
                a_service_that_refuses_everything_marks_nothing,
                what_was_made_before_a_failure_is_kept,
                failures_are_tried_again_when_asked_for,
                vectors_are_counted_by_generation,
                vectors_of_an_unknown_generation_are_refused,
                an_estimate_counts_what_would_be_sent,
                a_rebuild_leaves_no_word_of_the_generation_before,
            ]
            context: [
                a_message_comes_with_its_neighbours,
                a_turn_comes_with_its_neighbours,
                a_place_that_does_not_exist_is_refused,
                context_stays_in_scope,
            ]
            renaming: [
                everything_follows_the_new_name,
                names_with_the_same_session_stay_apart,
                nobody_is_renamed_without_harm,
            ]
            isolation: [
                the_same_session_id_of_two_users_is_two_sessions,
                searches_stay_in_scope,
                a_filter_on_a_session_stays_in_scope,
                owed_vectors_and_sync_states_are_each_users_own,
                names_are_plain_text,
                names_do_not_run_together,
            ]
            deletion: [
                no_read_shows_a_deleted_session,
                the_same_words_elsewhere_are_still_found,
                deleting_what_is_not_there_changes_no_answer,
                a_session_that_comes_again_begins_anew,
                deletions_are_remembered,
                deletions_follow_a_new_name,
            ]
            scopes: [
                sessions_are_listed_as_far_as_one_may_see,
                rows_are_read_by_those_who_may_see_them,
                searches_find_what_one_may_see,
                events_are_found_where_one_may_see_them,
                counts_are_of_what_one_may_see,
                trees_show_what_one_may_see,
                sharing_takes_effect_at_once,
                what_follows_in_a_shared_session_is_found,
                a_viewers_own_session_wins,
                the_scope_of_a_user_is_what_they_own,
                groups_without_a_name_match_nothing,
                a_group_counts_for_its_own_visibility_alone,
                names_of_groups_are_plain_text,
                a_filter_on_a_session_shows_no_private_one,
            ]
            search_text: [
                words_are_found_wherever_they_stand,
                json_keys_are_not_found,
                what_was_run_is_found_by_its_words,
                answers_of_tools_are_found_as_they_are_read,
                system_messages_are_found_when_asked_for,
                accents_and_case_make_no_difference,
                long_identifiers_are_found,
                better_matches_rank_higher,
                candidates_are_scored_by_bm25,
                each_text_of_a_message_is_a_candidate,
                snippets_mark_the_words,
                a_message_is_found_by_what_it_says_now,
                updating_the_index_changes_no_answer,
                a_committed_message_is_found_at_once,
            ]
            search_vectors: [
                the_nearest_message_comes_first,
                it_agrees_with_brute_force,
                candidates_are_exact,
                filters_narrow_before_the_ranking,
                the_nearest_chunk_stands_for_its_message,
                the_least_similarity_holds,
                without_a_provider_it_is_unsupported,
                a_failing_provider_is_an_error,
                nothing_is_near_where_there_is_nothing,
                changed_and_removed_messages_are_not_near,
                vectors_of_another_handle_are_near_at_once,
            ]
            vector_search: [
                the_order_is_that_of_brute_force,
                a_result_carries_its_similarity,
                the_length_of_the_vector_makes_no_difference,
                what_is_compared_is_narrowed,
                the_least_similarity_holds,
                copies_stand_side_by_side,
                the_nearest_chunk_stands_for_its_message,
                options_out_of_range_are_errors,
                nothing_is_near_where_there_is_nothing,
            ]
            search_hybrid: [
                what_both_ways_find_stands_first,
                messages_without_vectors_are_found_by_words,
                without_a_provider_it_is_full_text_and_says_so,
                a_failing_provider_leaves_full_text,
                copies_move_down,
                the_greatest_similarity_to_what_is_chosen_counts,
                scores_descend_with_diversity,
                a_store_without_vectors_is_searched_by_words,
            ]
            search_every_mode: [
                content_types_are_searched_as_asked,
                thinking_is_not_found_unasked,
                options_out_of_range_are_errors,
                any_text_is_a_plain_query,
                a_message_is_one_result_and_scores_descend,
                filters_narrow_the_answer,
                a_result_says_where_it_stands,
                no_answer_holds_a_vector,
                an_empty_store_has_no_results,
            ]
            filters: [
                every_filter_equals_brute_force,
                filters_hold_for_what_came_after_the_index,
                a_session_is_filtered_by_what_it_is_now,
                filters_narrow_before_the_ranking,
            ]
            concurrency: [
                sixteen_tasks_on_sessions_of_their_own,
                sixteen_tasks_with_the_same_lines,
                sixteen_tasks_with_different_lines,
                sixteen_tasks_that_append,
                the_second_of_two_writers_meets_a_conflict,
                readers_see_whole_writes,
                searching_while_others_write,
                an_abandoned_sync_is_completed_by_the_next,
            ]
            backend_rows: [
                what_is_unknown_is_empty_and_no_error,
                meta_names_the_version_and_the_writer,
                meta_values_are_put_once,
                meta_values_are_replaced_when_expected,
                a_write_of_a_stale_version_is_a_conflict,
                sessions_are_written_together_as_each_alone,
                every_write_changes_the_version,
                what_a_change_does_not_name_stays,
                rows_are_cut_before_they_are_put,
                messages_are_read_by_their_places,
                rows_are_read_in_order_from_a_sequence_on,
                payloads_of_missing_events_are_left_out,
                events_are_found_by_id,
                sync_states_are_listed_in_order,
                rows_follow_their_session_to_another_project,
            ]
            backend_vectors: [
                a_message_that_is_put_loses_its_vectors,
                vectors_of_another_line_are_not_stored,
                vectors_are_only_stored_in_their_space,
                vectors_replace_those_of_the_message,
                vectors_come_back_as_they_were,
                messages_that_owe_vectors_are_listed_in_order,
            ]
            backend_counts: [
                session_rows_tell_what_is_stored,
                texts_with_vectors_are_listed_in_order,
                events_are_counted_as_one_by_one,
                sums_of_tokens_do_not_overflow,
                messages_are_counted_by_day_and_role,
                a_store_says_where_it_is,
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
            $crate::conformance::check($crate::conformance::$group::$promise(&$subject));
        }
        $crate::conformance_tests! { @tests [$($attribute)?] $subject; $group $($rest)* }
    };
    ($subject:expr; $($groups:tt)*) => {
        $crate::conformance_tests! { @with [] $subject; $($groups)* }
    };
}
