//! Properties of the history: whatever happens, replay and pages agree with the state.

use std::collections::BTreeMap;

use k8s_fake_apiserver::FakeApiServer;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Next, get, short, watch};

#[derive(Debug, Clone)]
enum Step {
    Put(u8, u8, u8),
    Delete(u8, u8),
    Advance(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0u8..3, 0u8..6, 0u8..3).prop_map(|(ns, name, app)| Step::Put(ns, name, app)),
        2 => (0u8..3, 0u8..6).prop_map(|(ns, name)| Step::Delete(ns, name)),
        1 => (1u8..4).prop_map(Step::Advance),
    ];
    prop::collection::vec(step, 1..40)
}

fn map(namespace: u8, name: u8, app: u8) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("m{name}"), "namespace": format!("n{namespace}"), "labels": {"app": format!("a{app}")}},
    })
}

fn run(server: &FakeApiServer, step: &Step) {
    match step {
        Step::Put(namespace, name, app) => drop(server.apply(map(*namespace, *name, *app)).unwrap()),
        Step::Delete(namespace, name) => {
            server.delete("v1/configmaps", Some(&format!("n{namespace}")), &format!("m{name}")).unwrap();
        }
        Step::Advance(by) => server.advance(u64::from(*by)),
    }
}

type Selected = fn(&Value) -> bool;

/// Key to version and label.
type State = BTreeMap<String, (String, String)>;

fn entry(object: &Value) -> (String, (String, String)) {
    let metadata = &object["metadata"];
    let text = |v: &Value| v.as_str().unwrap().to_owned();
    (
        format!("{}/{}", text(&metadata["namespace"]), text(&metadata["name"])),
        (text(&metadata["resourceVersion"]), text(&metadata["labels"]["app"])),
    )
}

fn state(server: &FakeApiServer, selected: impl Fn(&Value) -> bool) -> State {
    server.objects("v1/configmaps").unwrap().iter().filter(|o| selected(o)).map(entry).collect()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The state at a revision plus the replay since then is the final state, for a whole kind, a namespace and a selector.
    #[test]
    fn replay_from_any_revision_gives_the_final_state(before in steps(), after in steps()) {
        block_on(async {
            let server = FakeApiServer::builder().start().await.unwrap();
            before.iter().for_each(|s| run(&server, s));
            let selections: [(&str, Selected); 3] = [
                ("/api/v1/configmaps?", |_| true),
                ("/api/v1/namespaces/n1/configmaps?", |o| o["metadata"]["namespace"] == "n1"),
                ("/api/v1/configmaps?labelSelector=app%3Da1&", |o| o["metadata"]["labels"]["app"] == "a1"),
            ];
            let starts: Vec<State> = selections.iter().map(|(_, selected)| state(&server, selected)).collect();
            let from = server.revision();
            after.iter().for_each(|s| run(&server, s));
            for ((path, selected), mut found) in selections.into_iter().zip(starts) {
                let mut lines = watch(&server, &format!("{path}watch=1&resourceVersion={from}&timeoutSeconds=1")).await;
                let mut last = from;
                while let Next::Line(line) = lines.next().await {
                    let (key, value) = entry(&line["object"]);
                    let version: u64 = value.0.parse().unwrap();
                    assert!(version > last, "{} after {last}", short(&line));
                    last = version;
                    let had = match line["type"].as_str().unwrap() {
                        "DELETED" => found.remove(&key).is_some(),
                        kind => found.insert(key, value).is_some() == (kind == "MODIFIED") || kind == "none",
                    };
                    assert!(had, "{} does not follow", short(&line));
                }
                assert_eq!(found, state(&server, selected));
            }
        });
    }

    /// Pages show the state as it was when the first one was read.
    #[test]
    fn pages_are_one_snapshot(before in steps(), between in prop::collection::vec(steps(), 1..4), size in 1usize..5) {
        block_on(async {
            let server = FakeApiServer::builder().start().await.unwrap();
            before.iter().for_each(|s| run(&server, s));
            let expected = state(&server, |_| true);
            let client = server.client();
            let (mut found, mut next, mut turns) = (State::new(), String::new(), between.iter());
            loop {
                let (code, page) = get(&client, &format!("/api/v1/configmaps?limit={size}&continue={next}")).await;
                assert_eq!(code, 200, "{page}");
                let items = page["items"].as_array().unwrap();
                found.extend(items.iter().map(entry));
                let left = page["metadata"]["remainingItemCount"].as_u64().unwrap_or_default() as usize;
                assert_eq!(found.len() + left, expected.len());
                next = page["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
                if next.is_empty() {
                    break;
                }
                assert_eq!(items.len(), size);
                turns.next().into_iter().flatten().for_each(|s| run(&server, s));
            }
            assert_eq!(found, expected);
        });
    }

    /// A list at an exact revision is the state that was then.
    #[test]
    fn exact_lists_look_back(steps in steps()) {
        block_on(async {
            let server = FakeApiServer::builder().start().await.unwrap();
            let client = server.client();
            let mut moments = Vec::new();
            for step in &steps {
                run(&server, step);
                moments.push((server.revision(), state(&server, |_| true)));
            }
            for (revision, expected) in moments {
                let (_, list) = get(&client, &format!("/api/v1/configmaps?resourceVersion={revision}&resourceVersionMatch=Exact")).await;
                let found: State = list["items"].as_array().unwrap().iter().map(entry).collect();
                assert_eq!(found, expected);
            }
        });
    }

    /// Any text is a selector or is refused.
    #[test]
    fn selectors_never_panic(text in "[a-z!=<>(), .\\\\/é]{0,24}") {
        block_on(async {
            let server = FakeApiServer::builder().object(map(0, 0, 0)).start().await.unwrap();
            let client = server.client();
            let coded: String = text.bytes().map(|b| format!("%{b:02x}")).collect();
            for name in ["labelSelector", "fieldSelector"] {
                let code = get(&client, &format!("/api/v1/configmaps?{name}={coded}")).await.0;
                assert!(code == 200 || code == 400, "{name}={text}: {code}");
            }
        });
    }

    /// Selectors agree with a plain reading of them.
    #[test]
    fn selectors_mean_what_they_say(
        labels in prop::collection::btree_map("[ab]", "[xy]", 0..3),
        terms in prop::collection::vec(("[abc]", 0usize..6, prop::collection::vec("[xyz]", 1..3)), 1..3),
    ) {
        let holds = |(key, operator, values): &(String, usize, Vec<String>)| {
            let value = labels.get(key);
            match operator {
                0 => value == Some(&values[0]),
                1 => value != Some(&values[0]),
                2 => value.is_some_and(|v| values.contains(v)),
                3 => !value.is_some_and(|v| values.contains(v)),
                4 => value.is_some(),
                _ => value.is_none(),
            }
        };
        let text = |(key, operator, values): &(String, usize, Vec<String>)| match operator {
            0 => format!("{key}={}", values[0]),
            1 => format!("{key}!={}", values[0]),
            2 => format!("{key} in ({})", values.join(",")),
            3 => format!("{key} notin ({})", values.join(",")),
            4 => key.clone(),
            _ => format!("!{key}"),
        };
        let selector = terms.iter().map(text).collect::<Vec<_>>().join(",");
        let expected = terms.iter().all(holds);
        block_on(async {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "labels": labels}});
            let server = FakeApiServer::builder().object(object).start().await.unwrap();
            let coded: String = selector.bytes().map(|b| format!("%{b:02x}")).collect();
            let (_, list) = get(&server.client(), &format!("/api/v1/configmaps?labelSelector={coded}")).await;
            assert_eq!(list["items"].as_array().unwrap().len() == 1, expected, "{selector}");
        });
    }
}
