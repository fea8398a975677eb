//! End-to-end scenarios: the same code on the embedded API server and on a real kube-apiserver.
//!
//! `cargo test -p e2e` runs them on the embedded server, and on the real one if there is one: see
//! [`e2e::HOW_TO_GET_ONE`]. Words after `--` choose among the names, as usual.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test runner: what it finds must be seen")]

mod cached;
mod conformance;
mod harness;
mod leader;
mod live;
mod own_writes;
mod requests;
mod runner;
mod scopes;
mod single;
mod support;
mod sync;
mod torture;
mod trouble;

use std::process::ExitCode;

use runner::{Run, Scenario};

/// Names a scenario after its function.
macro_rules! scenarios {
    ($($run:ident $module:ident::$name:ident,)*) => {
        [$(Scenario { name: stringify!($name), run: Run::$run(|target| Box::pin($module::$name(target))) }),*]
    };
}

fn main() -> ExitCode {
    runner::run(&scenarios![
        // The longest first: on the embedded server others run beside it.
        Alone torture::torture_under_steady_writes,
        Shared sync::sync_of_5000_objects,
        Shared conformance::answers_about_objects,
        Shared conformance::answers_about_status,
        Shared sync::streaming_list_where_the_server_has_it,
        Shared sync::pages_of_a_hundred,
        Shared live::live_changes_with_statistics,
        Shared live::key_change_moves_the_object,
        Shared live::selections_are_left_and_entered_again,
        Shared live::pods_of_one_node,
        Shared trouble::silent_connection_is_given_up,
        Shared scopes::two_namespaces_in_one_store,
        Shared scopes::cluster_scoped_kind_is_watched_once,
        Shared scopes::definition_comes_while_a_watcher_waits,
        Shared scopes::secrets_of_a_megabyte,
        Shared scopes::metadata_alone,
        Shared single::one_secret_with_rights_for_its_name_alone,
        Shared single::a_group_starts_together,
        Shared own_writes::own_writes_are_no_change_and_foreign_ones_are,
        Shared own_writes::own_deletes_are_recognised_where_the_answer_tells_them,
        Shared cached::reads_are_fresh_and_references_small,
        Shared cached::selectors_hold_for_reads_by_name,
        Shared leader::lead_is_handed_over,
        Shared leader::one_of_two_wins_each_lease,
        Alone conformance::answers_to_lists,
        Alone conformance::answers_to_watches,
        Alone harness::stops_starts_and_forgets,
        Alone trouble::relist_after_compaction,
        Alone trouble::restart_in_the_middle_of_writes,
    ])
}
