//! Small objects with the fields that the tests index.
use k8s_indexer::Indexer;
use k8s_packed::{Encoder, Object};
use k8s_store::{MemoryStore, Objects, StorePlan, Writer, memory_store};
use k8s_types::IndexExpression;
use serde_json::{Value, json};

/// An object as the tests think of it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Fixture {
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) team: Option<String>,
    pub(crate) zones: Vec<String>,
    pub(crate) version: u32,
}

impl Fixture {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: (!namespace.is_empty()).then(|| namespace.to_owned()),
            name: name.to_owned(),
            ..Self::default()
        }
    }

    pub(crate) fn team(mut self, team: &str) -> Self {
        self.team = Some(team.to_owned());
        self
    }

    pub(crate) fn zones(mut self, zones: &[&str]) -> Self {
        self.zones = zones.iter().map(|zone| (*zone).to_owned()).collect();
        self
    }

    pub(crate) fn version(mut self, version: u32) -> Self {
        self.version = version;
        self
    }

    pub(crate) fn identity(&self) -> (Option<&str>, &str) {
        (self.namespace.as_deref(), &self.name)
    }

    pub(crate) fn json(&self) -> Value {
        let mut metadata = json!({
            "name": self.name,
            "uid": format!("uid-{:?}-{}", self.namespace, self.name),
            "resourceVersion": self.version.to_string(),
        });
        if let Some(namespace) = &self.namespace {
            metadata["namespace"] = json!(namespace);
        }
        if let Some(team) = &self.team {
            metadata["labels"] = json!({"team": team});
        }
        json!({"metadata": metadata, "spec": {"zones": self.zones}})
    }

    pub(crate) fn object(&self) -> Object {
        Object::from_value(&self.json()).expect("a JSON object")
    }
}

pub(crate) fn multi_valued(expression: &str) -> IndexExpression {
    IndexExpression::multi_valued(expression)
}

pub(crate) const ZONES: &str = "spec.zones[*]";
pub(crate) const TEAM: &str = "metadata.labels.team";

/// Namespace and team, with an index of several keys an object beside it, and indexes that identity answers.
pub(crate) fn plan() -> StorePlan {
    let indexer = |expressions: Vec<IndexExpression>| Indexer::new(expressions).expect("valid");
    StorePlan::index_by(["metadata.namespace", TEAM])
        .expect("valid")
        .named("by-zone", indexer(vec![multi_valued(ZONES)]))
        .expect("new name")
        .named("by-name", indexer(vec!["metadata.namespace".into(), "metadata.name".into()]))
        .expect("new name")
        .named("by-namespace", indexer(vec!["metadata.namespace".into()]))
        .expect("new name")
        .named("by-team-zone-name", indexer(vec![TEAM.into(), multi_valued(ZONES), "metadata.name".into()]))
        .expect("new name")
}

pub(crate) fn empty(plan: StorePlan) -> (Writer, MemoryStore) {
    memory_store(plan, Encoder::new())
}

/// `namespace/name` of each object.
pub(crate) fn names(objects: Objects<'_>) -> Vec<String> {
    objects
        .map(|object| match object.namespace() {
            Some(namespace) => format!("{namespace}/{}", object.name()),
            None => object.name().to_owned(),
        })
        .collect()
}
