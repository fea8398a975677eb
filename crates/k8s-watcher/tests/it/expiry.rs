//! Versions that expire, run backwards, or lag: what the store shows and what is reported.

use k8s_fake_apiserver::{FakeApiServer, List, Status, Watch};
use k8s_types::Change;
use k8s_watcher::{ErrorClass, Phase, Watcher};
use serde_json::json;
use tower::Service;

use crate::support::*;

/// A gap: changes happen while no watch is open, and the history is forgotten.
async fn gap(server: &FakeApiServer, changes: impl FnOnce(&FakeApiServer)) {
    let watches = server.faults().on(Watch::of(MAPS)).hold();
    server.close_watches();
    settle(secs(5)).await;
    changes(server);
    server.advance(1);
    server.compact();
    watches.release();
    settle(secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn c01_what_was_deleted_while_the_watch_was_down_is_a_delete_like_any_other() {
    for config in [config(), paged()] {
        let server = server([config_map("a", "x"), config_map("b", "y"), config_map("c", "z")]).await;
        let (watcher, record) = watching(&server, config).await;
        let mut changes = watcher.changes();
        changes.next().await.unwrap();
        gap(&server, |server| {
            server.delete(MAPS, Some("shop"), "b").unwrap();
            server.apply(config_map("c", "w")).unwrap();
        })
        .await;
        assert_eq!(names(&watcher), ["a", "c"]);
        assert_eq!(watcher.store().get(["shop", "y"]).unwrap().len(), 0);
        assert_eq!(watcher.store().get(["shop", "z"]).unwrap().len(), 0);
        assert_eq!(watcher.store().get(["shop", "w"]).unwrap().len(), 1);
        assert_eq!(record.totals(), (0, 1, 1));
        let batch = changes.next().await.unwrap();
        assert_eq!((batch.stats.created, batch.stats.modified, batch.stats.deleted), (0, 1, 1));
        let [Change::Deleted(last), Change::Modified { .. }] = &batch.changes[..] else { panic!("{batch:?}") };
        assert_eq!((last.name(), last.label("app")), ("b", Some("y")), "the last known object");
    }
}

#[tokio::test(start_paused = true)]
async fn c04_a_410_in_an_open_watch_leads_to_one_relist() {
    let expired = || Status::expired("too old resource version: 5 (9)");
    for form in ["event", "event then end", "http", "code 410 without a reason", "reason without a code"] {
        let server = server([config_map("a", "x")]).await;
        let (watcher, record) = watching(&server, config()).await;
        let rule = server.faults().on(Watch::of(MAPS)).nth(1);
        match form {
            "event" => drop(rule.gone()),
            "event then end" => drop(rule.error(expired())),
            "http" => drop(rule.gone_http()),
            "code 410 without a reason" => {
                drop(rule.line(r#"{"type":"ERROR","object":{"kind":"Status","code":410}}"#));
            }
            _ => drop(rule.line(r#"{"type":"ERROR","object":{"kind":"Status","reason":"Expired"}}"#)),
        }
        server.close_watches();
        settle(secs(5)).await;
        server.apply(config_map("b", "x")).unwrap();
        same_as_served(&watcher, &server).await;
        settle(secs(60)).await;
        assert_eq!(watcher.status().relists, 1, "{form}");
        assert_eq!(watcher.last_watch_error().unwrap().class, ErrorClass::Expired, "{form}");
        assert_eq!(record.totals(), (1, 0, 0), "{form}");
        assert!(watcher.store().list().iter().all(|o| o.kind() == Some("ConfigMap")), "{form}");
        // The full state, then the watch that was part of it: nothing is asked twice.
        let asked = asked(&server, Watch::of(MAPS));
        assert_eq!(asked.len(), 3, "{form}: {asked:?}");
        assert!(asked[2].contains("sendInitialEvents"), "{form}: {asked:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn c18_a_bookmark_saves_the_relist_of_a_quiet_kind() {
    let server = server(many(3)).await;
    let (watcher, record) = watching(&server, config()).await;
    server.advance(900);
    // A bookmark comes within a minute.
    settle(secs(90)).await;
    let at = watcher.status().resource_version.unwrap();
    assert_eq!(at, server.revision().to_string());
    server.compact();
    server.close_watches();
    settle(secs(30)).await;
    assert_eq!(asked(&server, Watch::of(MAPS)).last().unwrap(), &format!("watch resourceVersion={at}"));
    assert_eq!(server.journal().count(List::of(MAPS)), 0);
    assert_eq!((watcher.status().relists, record.len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn c19_of_a_bookmark_only_the_version_counts() {
    let server = server(many(1)).await;
    let (watcher, record) = watching(&server, config()).await;
    let revision = server.revision();
    server.advance(100);
    let bookmarks = [
        json!({"kind": "ConfigMap", "metadata": {"resourceVersion": (revision + 10).to_string()}}),
        json!({"metadata": {"resourceVersion": (revision + 20).to_string(), "creationTimestamp": null}, "spec": {"selector": null}}),
        json!({"metadata": {"resourceVersion": (revision + 30).to_string()}, "unknown": [[{"x": {}}]], "data": null}),
    ];
    let rule = server.faults();
    for bookmark in &bookmarks {
        rule.on(Watch::of(MAPS)).nth(1).line(json!({"type": "BOOKMARK", "object": bookmark}).to_string());
    }
    server.close_watches();
    settle(secs(5)).await;
    assert_eq!(watcher.status().resource_version, Some((revision + 30).to_string()));
    assert_eq!((watcher.store().len(), record.len()), (1, 0));
    assert_eq!(watcher.status().skipped, 0);
}

#[tokio::test(start_paused = true)]
async fn c28_a_new_uid_is_another_object_whether_seen_by_watch_or_by_relist() {
    let a = |uid: &str| {
        let mut a = config_map("a", "x");
        a["metadata"]["uid"] = uid.into();
        a["metadata"]["generation"] = 1.into();
        a
    };
    for seen_by in ["watch", "relist"] {
        let server = server([a("u1")]).await;
        let (watcher, record) = watching(&server, config()).await;
        let mut changes = watcher.changes();
        changes.next().await.unwrap();
        let recreate = |server: &FakeApiServer| {
            server.delete(MAPS, Some("shop"), "a").unwrap();
            server.apply(a("u2")).unwrap();
        };
        if seen_by == "watch" {
            recreate(&server)
        } else {
            gap(&server, recreate).await
        }
        eventually(&watcher, "u2", |s| s.by_name(Some("shop"), "a").is_some_and(|a| a.uid() == Some("u2"))).await;
        settle(secs(1)).await;
        assert_eq!(record.totals(), (1, 0, 1), "{seen_by}");
        let batch = changes.next().await.unwrap();
        let uids: Vec<_> = batch.changes.iter().map(|c| (c.is_deleted(), c.object().uid().unwrap_or(""))).collect();
        assert_eq!(uids, [(true, "u1"), (false, "u2")], "{seen_by}");
    }
}

#[tokio::test(start_paused = true)]
async fn c27_a_cluster_restored_from_a_backup_is_noticed_and_reported() {
    let server = fake().revision(1_200).objects(many(3)).start().await.unwrap();
    let (watcher, record) = watching(&server, config()).await;
    settle(secs(30)).await;
    server.restart_at(1_000, [config_map("m0000", "old"), config_map("z", "old")]).unwrap();
    server.advance(10);
    settle(secs(300)).await;
    same_as_served(&watcher, &server).await;
    assert_eq!(names(&watcher), ["m0000", "z"]);
    let seen: Vec<ErrorClass> = watcher.last_watch_error().iter().map(|e| e.class).collect();
    assert_eq!(seen, [ErrorClass::Backwards]);
    assert!(record.totals().2 >= 2);
    check_index(&watcher.store().snapshot());
    // The watch goes on from there.
    server.apply(config_map("new", "x")).unwrap();
    same_as_served(&watcher, &server).await;
}

#[tokio::test(start_paused = true)]
async fn c27_a_restore_with_raised_versions_takes_objects_back_all_the_same() {
    // As `etcdutl snapshot restore --bump-revision --mark-compacted`: what was written after the backup is undone, all
    // versions to come are higher than any that was seen, and every watch has to begin anew.
    let a = || at(900, config_map("a", "same"));
    for config in [config(), paged()] {
        let server = fake().revision(1_200).start().await.unwrap();
        let lost = at(1_150, config_map("b", "lost"));
        server.restart_at(1_200, [a(), lost, at(1_160, config_map("d", "lost"))]).unwrap();
        let (watcher, record) = watching(&server, config).await;
        let mut changes = watcher.changes();
        changes.next().await.unwrap();
        let backup = [a(), at(950, config_map("b", "backup")), at(940, config_map("c", "backup"))];
        server.restart_at(1_000_000, backup).unwrap();
        settle(secs(30)).await;
        same_as_served(&watcher, &server).await;
        assert_eq!(names(&watcher), ["a", "b", "c"]);
        assert_eq!(label(&watcher, "b").as_deref(), Some("backup"));
        assert_eq!(watcher.store().get(["shop", "lost"]).unwrap().len(), 0);
        assert_eq!(watcher.store().get(["shop", "backup"]).unwrap().len(), 2);
        assert_eq!(record.totals(), (1, 1, 1));
        let batch = changes.next().await.unwrap();
        assert_eq!((batch.stats.created, batch.stats.modified, batch.stats.deleted), (1, 1, 1));
        let status = watcher.status();
        assert_eq!(status.last_watch_error.unwrap().class, ErrorClass::Backwards);
        assert_eq!((status.relists, status.phase), (2, Phase::Watching));
        server.apply(config_map("b", "later")).unwrap();
        same_as_served(&watcher, &server).await;
        // What was believed of `b` is over: the next full list is one like any other.
        watcher.relist();
        settle(secs(30)).await;
        assert_eq!(watcher.status().relists, 3);
    }
}

#[tokio::test(start_paused = true)]
async fn c27_a_restore_with_raised_versions_is_noticed_in_one_namespace_and_of_what_cannot_be_read() {
    let server = fake().revision(1_200).start().await.unwrap();
    let of = |namespace: &str, version: u64, value: &str| at(version, config_map_in(namespace, "a", value));
    server.restart_at(1_200, [of("shop", 1_150, "lost"), of("pay", 900, "same"), of("bad", 1_150, "lost")]).unwrap();
    let (watcher, record) = watching(&server, paged().namespaces(["shop", "pay", "bad"])).await;
    let deep = (0..200).fold(serde_json::Value::Null, |inner, _| json!([inner]));
    server.faults().on(List::of(MAPS).namespace("bad")).always().edit(move |object| {
        object["metadata"]["labels"]["app"] = deep.clone();
    });
    let backup = [of("shop", 950, "backup"), of("pay", 900, "same"), of("bad", 950, "backup")];
    server.restart_at(1_000_000, backup).unwrap();
    settle(secs(60)).await;
    let value = |namespace: &str| {
        watcher.store().by_name(Some(namespace), "a").and_then(|a| a.label("app").map(str::to_owned)).unwrap()
    };
    assert_eq!((value("shop"), value("pay"), value("bad")), ("backup".into(), "same".into(), "lost".into()));
    let status = watcher.status();
    assert_eq!((record.totals(), status.failures.of(ErrorClass::Backwards)), ((0, 1, 0), 2));
    assert!(status.skipped > 0);
    // The last good state stays, and does not stand in the way of the next one for being later.
    server.faults().clear();
    watcher.relist();
    settle(secs(60)).await;
    same_as_served(&watcher, &server).await;
    assert_eq!((value("bad"), record.totals()), ("backup".into(), (0, 2, 0)));
}

#[tokio::test(start_paused = true)]
async fn c27_initial_events_that_lag_and_catch_up_are_no_restore() {
    let server = server([]).await;
    let a = |version: u64, value: &str| json!({"type": "ADDED", "object": at(version, config_map("a", value))});
    let bookmark = |version: u64| {
        json!({"type": "BOOKMARK", "object": {"kind": "ConfigMap", "metadata": {
            "resourceVersion": version.to_string(), "annotations": {"k8s.io/initial-events-end": "true"},
        }}})
    };
    server.advance(1_000);
    let known = server.revision();
    for (nth, lines) in [
        (1, vec![a(known, "known"), bookmark(known)]),
        (2, vec![a(known - 100, "before"), a(known + 5, "after"), bookmark(known + 5)]),
    ] {
        for line in lines {
            server.faults().on(Watch::of(MAPS)).nth(nth).line(line.to_string());
        }
    }
    let (watcher, record) = watching(&server, config()).await;
    server.advance(10);
    watcher.relist();
    settle(secs(10)).await;
    assert_eq!(label(&watcher, "a").as_deref(), Some("after"));
    assert_eq!((record.totals(), watcher.status().relists), ((0, 1, 0), 1));
    assert!(watcher.last_watch_error().is_none(), "{:?}", watcher.last_watch_error());
}

#[tokio::test(start_paused = true)]
async fn c27_after_a_restore_equal_versions_do_not_mean_equal_objects() {
    let a = |value: &str| {
        let mut a = config_map("a", value);
        a["metadata"]["uid"] = "u1".into();
        a["metadata"]["resourceVersion"] = "1100".into();
        a
    };
    let server = fake().revision(1_200).start().await.unwrap();
    server.restart_at(1_200, [a("one")]).unwrap();
    let (watcher, record) = watching(&server, config()).await;
    assert_eq!(label(&watcher, "a").as_deref(), Some("one"));
    // The other branch of history reached the same version with another content.
    server.restart_at(1_150, [a("two")]).unwrap();
    settle(secs(400)).await;
    assert_eq!(label(&watcher, "a").as_deref(), Some("two"));
    assert_eq!(record.totals(), (0, 1, 0));
    assert_eq!(watcher.store().get(["shop", "one"]).unwrap().len(), 0);
    assert_eq!(watcher.store().get(["shop", "two"]).unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn c25_a_lagging_server_cannot_take_the_store_back() {
    let server = server(many(3)).await;
    let replica = server.replica();
    let on_replica = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (leader, lagging, switch) = (server.service(), replica.service(), on_replica.clone());
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let lags = switch.load(std::sync::atomic::Ordering::SeqCst);
        if lags { lagging.clone() } else { leader.clone() }.call(request)
    });
    let watcher = Watcher::builder(kube::Client::new(service, "default"), config()).spawn().unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    for i in 0..40 {
        server.apply(config_map("m0000", &i.to_string())).unwrap();
    }
    server.delete(MAPS, Some("shop"), "m0001").unwrap();
    same_as_served(&watcher, &server).await;
    let seen = watcher.status().resource_version.unwrap();
    replica.set_lag(20);
    on_replica.store(true, std::sync::atomic::Ordering::SeqCst);
    watcher.relist();
    for _ in 0..100 {
        settle(ms(200)).await;
        assert_eq!(label(&watcher, "m0000").as_deref(), Some("39"), "never an older version");
        assert_eq!(names(&watcher), ["m0000", "m0002"], "what was deleted stays away");
    }
    let relist = asked(&server, Watch::of(MAPS)).pop().unwrap();
    assert_eq!(
        relist,
        format!("watch resourceVersion={seen} resourceVersionMatch=NotOlderThan sendInitialEvents=true")
    );
    replica.set_lag(0);
    server.apply(config_map("m0000", "newest")).unwrap();
    same_as_served(&watcher, &server).await;
}

#[tokio::test(start_paused = true)]
async fn c27_a_page_that_is_behind_what_a_newer_page_showed_is_no_restore() {
    // Pages of different versions, and then a list that is not older than the first of them, but than the second.
    let server = server([config_map("a", "x"), config_map("b", "x")]).await;
    let first = server.revision();
    let page = |version: u64, of: serde_json::Value| {
        move |page: &mut serde_json::Value| {
            page["metadata"]["resourceVersion"] = version.to_string().into();
            page["items"] = json!([of.clone()]);
        }
    };
    server.advance(100);
    let faults = server.faults();
    faults.on(List::of(MAPS)).nth(1).edit_body(page(first, at(first, config_map("a", "x"))));
    faults.on(List::of(MAPS)).nth(2).edit_body(page(first + 9, at(first + 8, config_map("b", "newest"))));
    faults.on(List::of(MAPS)).nth(3).edit_body(page(first + 5, at(first, config_map("a", "x"))));
    faults.on(List::of(MAPS)).nth(4).edit_body(page(first + 5, at(first + 4, config_map("b", "before"))));
    faults.on(Watch::of(MAPS)).always().hang();
    let (watcher, record) = watching(&server, paged().page_size(1)).await;
    watcher.relist();
    settle(secs(20)).await;
    assert_eq!(watcher.status().relists, 1);
    assert_eq!(label(&watcher, "b").as_deref(), Some("newest"));
    assert_eq!(record.len(), 0);
    assert!(watcher.last_watch_error().is_none(), "{:?}", watcher.last_watch_error());
}

/// A load whose second page is newer than its first, so that the watch, which begins at the version of the first, brings
/// what the store has got over already. `meanwhile` happens between the pages; the second shows what `b` is then.
async fn late_events(meanwhile: impl FnOnce(&FakeApiServer)) -> (FakeApiServer, k8s_watcher::RunningWatcher, Record) {
    let server = server([config_map("a", "x"), config_map("b", "old")]).await;
    let second = server.faults().on(List::of(MAPS)).nth(2).hold();
    let (builder, record) = recorded(&server, paged().page_size(1));
    let first_version = server.revision();
    let newest = server.clone();
    server.faults().on(List::of(MAPS)).nth(2).edit_body(move |page| {
        let b = newest.object(MAPS, Some("shop"), "b").unwrap().expect("b is there");
        page["metadata"]["resourceVersion"] = newest.revision().to_string().into();
        page["items"] = json!([b]);
    });
    let watcher = builder.spawn().unwrap();
    let mut changes = watcher.changes();
    second.wait_for(1).await;
    meanwhile(&server);
    second.release();
    watcher.wait_for_sync(LONG).await.unwrap();
    assert_eq!(changes.next().await.unwrap().changes.len(), 2);
    settle(secs(5)).await;
    assert_eq!(asked(&server, Watch::of(MAPS)), [format!("watch resourceVersion={first_version}")]);
    assert_eq!(changes.backlog(), 0);
    (server, watcher, record)
}

#[tokio::test(start_paused = true)]
async fn a_late_delete_event_does_not_take_away_what_is_newer() {
    let (server, watcher, record) = late_events(|server| {
        server.delete(MAPS, Some("shop"), "b").unwrap();
        server.apply(config_map("b", "new")).unwrap();
    })
    .await;
    assert_eq!(record.calls(), [], "the store had all of it");
    same_as_served(&watcher, &server).await;
}

#[tokio::test(start_paused = true)]
async fn late_events_do_not_take_the_store_back() {
    let (server, watcher, record) = late_events(|server| {
        for value in ["1", "2", "3"] {
            server.apply(config_map("b", value)).unwrap();
        }
    })
    .await;
    assert_eq!(record.calls(), [], "the store had all of it");
    same_as_served(&watcher, &server).await;
}
