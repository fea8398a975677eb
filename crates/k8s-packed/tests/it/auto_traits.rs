//! What threads may do with the public types, and what a handle costs.

use k8s_packed::{
    All, ArrayRef, Encoder, Error, Items, Labels, MapRef, Members, Number, Object, ObjectSeed, Path, PathError, Step,
    ValueRef,
};

fn everywhere<T: Send + Sync + Unpin + std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
fn across_threads<T: Send + Sync + Unpin>() {}
fn for_ever<T: 'static>() {}
fn copied<T: Copy>() {}

#[test]
fn handles_and_views_go_anywhere() {
    everywhere::<Object>();
    everywhere::<ValueRef<'_>>();
    everywhere::<MapRef<'_>>();
    everywhere::<ArrayRef<'_>>();
    everywhere::<Items<'_>>();
    everywhere::<Members<'_>>();
    everywhere::<Labels<'_>>();
    everywhere::<All<'_>>();
    everywhere::<Path>();
    everywhere::<Step>();
    everywhere::<Number>();
    everywhere::<Error>();
    everywhere::<PathError>();
    across_threads::<Encoder>();
    across_threads::<ObjectSeed<'_>>();
    for_ever::<Object>();
    for_ever::<Encoder>();
    copied::<ValueRef<'_>>();
    copied::<MapRef<'_>>();
    copied::<ArrayRef<'_>>();
    copied::<Number>();
}

#[test]
fn a_handle_takes_eight_bytes() {
    assert_eq!(size_of::<Object>(), 8);
    assert_eq!(size_of::<Option<Object>>(), 8);
    assert!(size_of::<ValueRef<'_>>() <= 32);
}
