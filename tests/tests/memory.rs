//! The short soaks of the process's memory, each in a process of its own.

use std::process::Command;

/// What a part printed, if it went well.
fn soak(part: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_memory")).args(["--short", part]).output().expect("it starts");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    assert!(out.contains("| last to second |") && out.contains("no task, no socket"), "{out}");
    out.into_owned()
}

#[test]
fn endless_new_values_in_the_same_objects_take_no_more_memory_than_the_first() {
    let out = soak("updates");
    assert!(out.contains("24000 updates of 200 Pods"), "{out}");
}

#[test]
fn objects_that_come_and_go_leave_nothing_in_three_indexes() {
    let out = soak("short-lived");
    assert!(out.contains("12000 came, 12000 went"), "{out}");
}

#[test]
fn watchers_that_end_in_any_way_leave_no_task_no_socket_and_no_memory() {
    let out = soak("watchers");
    assert!(out.contains("180 watchers"), "{out}");
}
