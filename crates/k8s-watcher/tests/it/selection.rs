//! What is selected, by the server and by the client; what leaving and entering the selection is.

use k8s_fake_apiserver::{List, Watch};
use k8s_types::{Change, WatcherConfig};
use k8s_watcher::Watcher;
use serde_json::json;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn c23_a_label_taken_away_is_a_delete_and_its_return_a_create() {
    for config in [config(), paged()] {
        let server = server([config_map("b", "other")]).await;
        let (watcher, record) = watching(&server, config.label_selector("app=x")).await;
        assert_eq!(watcher.store().len(), 0);
        for (value, len) in [("x", 1), ("y", 0), ("x", 1)] {
            server.apply(config_map("a", value)).unwrap();
            eventually(&watcher, value, |s| s.len() == len).await;
            assert_eq!(watcher.store().get(["shop", "x"]).unwrap().len(), len);
        }
        settle(secs(1)).await;
        assert_eq!(record.totals(), (2, 0, 1));
        let queries: Vec<_> = server.journal().matching(Watch::of(MAPS)).into_iter().collect();
        assert!(queries.iter().all(|r| r.query("labelSelector") == Some("app=x")), "{queries:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_field_selector_is_sent_as_it_is() {
    let server = server(many(3)).await;
    let (watcher, _) = watching(&server, paged().server_field_selector("metadata.name=m0001")).await;
    assert_eq!(names(&watcher), ["m0001"]);
    for request in server.journal().matching(List::of(MAPS)) {
        assert_eq!(request.query("fieldSelector"), Some("metadata.name=m0001"));
    }
    server.apply(config_map("m0002", "y")).unwrap();
    server.apply(config_map("m0001", "y")).unwrap();
    eventually(&watcher, "m0001 changed", |s| s.get(["shop", "y"]).unwrap().len() == 1).await;
    assert_eq!(watcher.store().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_stops_matching_the_field_selector_is_deleted_wherever_that_is_first_seen() {
    for seen_by in ["watch", "relist"] {
        let server = server([config_map("a", "x"), config_map("b", "y"), config_map("c", "x")]).await;
        let (watcher, record) = watching(&server, config().field_selector("data.value=x")).await;
        let mut changes = watcher.changes();
        assert_eq!(changes.next().await.unwrap().changes.len(), 2);
        assert_eq!(names(&watcher), ["a", "c"]);
        let hold = (seen_by == "relist").then(|| server.faults().on(Watch::of(MAPS)).hold());
        if hold.is_some() {
            server.close_watches();
            settle(secs(5)).await;
        }
        server.apply(config_map("a", "y")).unwrap();
        server.apply(config_map("b", "x")).unwrap();
        let mut c = config_map("c", "x");
        c["data"]["more"] = "1".into();
        server.apply(c).unwrap();
        server.apply(config_map("d", "y")).unwrap();
        if let Some(hold) = hold {
            server.compact();
            hold.release();
        }
        eventually(&watcher, "b matches", |s| s.by_name(Some("shop"), "b").is_some()).await;
        settle(secs(30)).await;
        assert_eq!(names(&watcher), ["b", "c"], "{seen_by}");
        assert_eq!(record.totals(), (1, 1, 1), "{seen_by}");
        let mut kinds = vec![];
        while changes.backlog() > 0 {
            let batch = changes.next().await.unwrap();
            kinds.extend(batch.changes.iter().map(|change| match change {
                Change::Created(o) => format!("+{}", o.name()),
                Change::Modified { new, .. } => format!("~{}", new.name()),
                Change::Deleted(o) => format!("-{}", o.name()),
            }));
        }
        kinds.sort();
        assert_eq!(kinds, ["+b", "-a", "~c"], "{seen_by}");
        // What never matched is gone without a word.
        server.delete(MAPS, Some("shop"), "d").unwrap();
        server.delete(MAPS, Some("shop"), "a").unwrap();
        settle(secs(2)).await;
        assert_eq!(record.totals(), (1, 1, 1), "{seen_by}");
    }
}

#[tokio::test(start_paused = true)]
async fn c48_what_is_ignored_is_no_change_but_the_version_moves_on() {
    let leader = "control-plane.alpha.kubernetes.io/leader";
    let object = |i: usize, value: &str| {
        let mut object = config_map("a", value);
        object["metadata"]["annotations"] = json!({leader: format!("{i}"), "kept": "1"});
        object["metadata"]["managedFields"] = json!([{"manager": format!("m{i}")}]);
        object
    };
    let server = server([object(0, "x")]).await;
    let config = config().ignore_fields([format!("metadata.annotations['{leader}']")]);
    let (watcher, record) = watching(&server, config).await;
    let mut changes = watcher.changes();
    changes.next().await.unwrap();
    for i in 1..=1_000 {
        server.apply(object(i, "x")).unwrap();
        if i % 100 == 0 {
            settle(ms(10)).await;
        }
    }
    same_as_served(&watcher, &server).await;
    assert_eq!(record.len(), 0);
    assert_eq!(changes.backlog(), 0);
    server.apply(object(0, "y")).unwrap();
    same_as_served(&watcher, &server).await;
    settle(secs(1)).await;
    assert_eq!(record.totals(), (0, 1, 0));
    assert_eq!(record.len(), 1);
    let a = watcher.store().by_name(Some("shop"), "a").unwrap();
    assert_eq!((a.annotation(leader), a.annotation("kept")), (None, Some("1")));
    assert!(a.to_value()["metadata"].get("managedFields").is_none());
}

#[tokio::test(start_paused = true)]
async fn managed_fields_can_be_kept() {
    let mut object = config_map("a", "x");
    object["metadata"]["managedFields"] = json!([{"manager": "kubectl"}]);
    let server = server([object]).await;
    let config = config().keep_managed_fields(true).named_index("manager", ["metadata.managedFields[0].manager"]);
    let (watcher, _) = watching(&server, config).await;
    assert_eq!(watcher.store().by_index("manager", ["kubectl"]).unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn metadata_only_asks_for_nothing_else_and_keeps_nothing_else() {
    for list_mode in [k8s_types::ListMode::Streaming, k8s_types::ListMode::Paged] {
        let server = server(many(3)).await;
        // Not every server does as it is asked.
        server.faults().on(k8s_fake_apiserver::Any::of(MAPS)).always().edit(|o| o["data"] = json!({"more": "1"}));
        let (watcher, record) = watching(&server, config().metadata_only(true).list_mode(list_mode)).await;
        let a = watcher.store().by_name(Some("shop"), "m0000").unwrap();
        assert_eq!(a.to_value().get("data"), None);
        assert_eq!(a.label("app"), Some("x"));
        // A change of data alone moves the version and is no change of what was asked for.
        let mut object = config_map("m0000", "x");
        object["data"]["value"] = "other".into();
        server.apply(object).unwrap();
        server.apply(config_map("m0001", "y")).unwrap();
        same_as_served(&watcher, &server).await;
        settle(secs(1)).await;
        assert_eq!(record.totals(), (0, 1, 0));
        let kinds: Vec<_> = watcher.store().list().iter().map(|o| o.kind().map(str::to_owned)).collect();
        assert!(kinds.iter().all(|k| k.as_deref() == Some("PartialObjectMetadata")), "{kinds:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn c55_an_object_without_a_key_is_listed_and_leaves_no_entry_under_its_former_key() {
    let with = |team: Option<&str>| {
        let mut object = config_map("a", "x");
        if let Some(team) = team {
            object["metadata"]["labels"]["team"] = team.into();
        }
        object
    };
    let server = server([with(Some("red"))]).await;
    let config = WatcherConfig::new(MAPS).index_by(["metadata.labels.team"]);
    let watcher = Watcher::builder(server.client(), config).spawn().unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    let found = |team: &str| watcher.store().get([team]).unwrap().len();
    assert_eq!((found("red"), watcher.store().len()), (1, 1));
    server.apply(with(None)).unwrap();
    eventually(&watcher, "no team", |s| s.get(["red"]).unwrap().is_empty()).await;
    assert_eq!(watcher.store().len(), 1);
    server.apply(with(Some("blue"))).unwrap();
    eventually(&watcher, "blue", |s| s.get(["blue"]).unwrap().len() == 1).await;
    assert_eq!((found("red"), watcher.store().len()), (0, 1));
    server.delete(MAPS, Some("shop"), "a").unwrap();
    eventually(&watcher, "nothing", |s| s.is_empty()).await;
    assert_eq!(found("blue"), 0);
}
