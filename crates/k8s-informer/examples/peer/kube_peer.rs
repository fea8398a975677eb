//! kube's own reflector, with `managedFields` cleared.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, Config, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use crate::Args;
use crate::measure::{Cache, Line, STAMP, Updates};

struct Reflector<K: Resource + 'static>(Store<K>, K::DynamicType)
where
    K::DynamicType: Hash + Eq;

impl<K> Cache for Reflector<K>
where
    K: Resource + Clone + 'static,
    K::DynamicType: Hash + Eq + Clone,
{
    type Key = ObjectRef<K>;

    fn names(&self) -> Vec<(String, String)> {
        self.0.state().iter().map(|o| (o.namespace().unwrap_or_default(), o.name_any())).collect()
    }

    fn key(&self, namespace: &str, name: &str) -> ObjectRef<K> {
        ObjectRef::new_with(name, self.1.clone()).within(namespace)
    }

    fn get(&self, namespace: &str, name: &str) -> bool {
        self.0.get(&self.key(namespace, name)).is_some()
    }

    fn get_by_key(&self, key: &ObjectRef<K>) -> bool {
        self.0.get(key).is_some()
    }

    fn namespace(&self, namespace: &str) -> usize {
        self.0.state_filter(|o| o.meta().namespace.as_deref() == Some(namespace)).len()
    }

    fn list(&self) -> usize {
        self.0.state().len()
    }
}

pub(crate) async fn typed(args: &Args, begin: Instant) -> Result<String> {
    ensure!(args.resource == "pods", "the typed peer watches pods only");
    run::<Pod>(args, begin, Api::all(client(args).await?), ()).await
}

pub(crate) async fn dynamic(args: &Args, begin: Instant) -> Result<String> {
    let resource = api_resource(args);
    run::<DynamicObject>(args, begin, Api::all_with(client(args).await?, &resource), resource).await
}

pub(crate) fn api_resource(args: &Args) -> ApiResource {
    let (group, kind) = match args.resource.as_str() {
        "pods" => ("", "Pod"),
        "configmaps" => ("", "ConfigMap"),
        "secrets" => ("", "Secret"),
        _ => ("discovery.k8s.io", "EndpointSlice"),
    };
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1", kind), &args.resource)
}

pub(crate) async fn client(args: &Args) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(&args.kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

async fn run<K>(args: &Args, begin: Instant, api: Api<K>, kind: K::DynamicType) -> Result<String>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Clone + Debug + Eq + Hash + Send + Sync + 'static,
{
    let writer = reflector::store::Writer::<K>::new(kind.clone());
    let store = writer.as_reader();
    let mut config = watcher::Config::default();
    if !args.paged {
        config = config.streaming_lists();
    }
    let cleared = watcher(api, config).map_ok(|event| event.modify(|o| o.managed_fields_mut().clear()));
    let updates = Arc::new(Updates::default());
    let seen = updates.clone();
    let task = tokio::spawn(async move {
        let mut events = std::pin::pin!(reflector::reflector(writer, cleared).default_backoff());
        while let Some(event) = events.next().await {
            if let Ok(watcher::Event::Apply(object)) = event {
                seen.seen(object.annotations().get(STAMP).map(String::as_str));
            }
        }
    });
    store.wait_until_ready().await?;
    let mut line = Line::synced(args, begin);
    line.memory().await;
    line.lookups(&Reflector(store, kind));
    line.updates(args, &updates).await?;
    task.abort();
    Ok(line.finish())
}
