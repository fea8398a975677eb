//! Writes through a `kube::Api` that record their answers.

use std::fmt::Debug;
use std::future::Future;

use k8s_types::Gvr;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{SelfWrites, WriteInFlight};

/// # Writes
///
/// Each sends what the method of the same name of `kube::Api` sends, gives what it gives, and records the
/// `resourceVersion` of the answer. While the request is under way the events of that object wait in watchers that
/// have this registry as their filter. Dropping one of these futures may leave a write that the server takes all the
/// same; its event is then reported like a foreign one.
impl SelfWrites {
    /// Creates an object. With `generateName`, the events of all names with that prefix wait for the answer.
    ///
    /// # Errors
    ///
    /// As `kube::Api::create`; nothing is recorded then.
    ///
    /// # Cancel safety
    ///
    /// The server may have taken the write when the future is dropped.
    pub async fn create<K>(&self, api: &Api<K>, params: &PostParams, object: &K) -> kube::Result<K>
    where
        K: Resource + Clone + DeserializeOwned + Serialize + Debug,
    {
        let meta = object.meta();
        let guard = match (&meta.name, &meta.generate_name) {
            (Some(name), _) => self.begin_at(api, name, SelfWrites::begin),
            (None, Some(prefix)) => self.begin_at(api, prefix, SelfWrites::begin_generated),
            (None, None) => None,
        };
        finish(guard, api.create(params, object)).await
    }

    /// Replaces an object.
    ///
    /// # Errors
    ///
    /// As `kube::Api::replace`; nothing is recorded then.
    ///
    /// # Cancel safety
    ///
    /// The server may have taken the write when the future is dropped.
    pub async fn replace<K>(&self, api: &Api<K>, name: &str, params: &PostParams, object: &K) -> kube::Result<K>
    where
        K: Resource + Clone + DeserializeOwned + Serialize + Debug,
    {
        replaced(self.begin_at(api, name, SelfWrites::begin), object, api.replace(name, params, object)).await
    }

    /// Replaces the status of an object.
    ///
    /// # Errors
    ///
    /// As `kube::Api::replace_status`; nothing is recorded then.
    ///
    /// # Cancel safety
    ///
    /// The server may have taken the write when the future is dropped.
    pub async fn replace_status<K>(&self, api: &Api<K>, name: &str, params: &PostParams, object: &K) -> kube::Result<K>
    where
        K: Resource + Clone + DeserializeOwned + Serialize + Debug,
    {
        replaced(self.begin_at(api, name, SelfWrites::begin), object, api.replace_status(name, params, object)).await
    }

    /// Patches an object, or creates it by server-side apply.
    ///
    /// # Errors
    ///
    /// As `kube::Api::patch`; nothing is recorded then.
    ///
    /// # Cancel safety
    ///
    /// The server may have taken the write when the future is dropped.
    pub async fn patch<K, P>(&self, api: &Api<K>, name: &str, params: &PatchParams, patch: &Patch<P>) -> kube::Result<K>
    where
        K: Resource + Clone + DeserializeOwned + Debug,
        P: Serialize + Debug,
    {
        self.during(api, name, api.patch(name, params, patch)).await
    }

    /// Patches the status of an object.
    ///
    /// # Errors
    ///
    /// As `kube::Api::patch_status`; nothing is recorded then.
    ///
    /// # Cancel safety
    ///
    /// The server may have taken the write when the future is dropped.
    pub async fn patch_status<K, P>(
        &self,
        api: &Api<K>,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> kube::Result<K>
    where
        K: Resource + Clone + DeserializeOwned + Debug,
        P: Serialize + Debug,
    {
        self.during(api, name, api.patch_status(name, params, patch)).await
    }

    /// Deletes an object; gives it as the answer has it, none if the server only says that it is gone.
    ///
    /// The answer of most kinds does not tell the version of the delete: then its event is reported like a foreign
    /// one. Recorded are the update that a graceful delete or a finalizer makes of it, and the delete of kinds that
    /// are answered with the deleted object (Services, for instance).
    ///
    /// # Errors
    ///
    /// As `kube::Api::delete`; nothing is recorded then.
    ///
    /// # Cancel safety
    ///
    /// The server may have taken the write when the future is dropped.
    pub async fn delete<K>(&self, api: &Api<K>, name: &str, params: &DeleteParams) -> kube::Result<Option<K>>
    where
        K: Resource + Clone + DeserializeOwned + Debug,
    {
        let guard = self.begin_at(api, name, SelfWrites::begin);
        let answer = api.delete(name, params).await?.left();
        if let Some(object) = &answer {
            record(guard, object);
        }
        Ok(answer)
    }

    /// Any other write of one object of `api`, such as of a subresource: `write` is the request, whose answer has the
    /// object's name and new version.
    ///
    /// # Errors
    ///
    /// Those of `write`; nothing is recorded then.
    ///
    /// # Cancel safety
    ///
    /// The server may have taken the write when the future is dropped.
    pub async fn during<K, T, E>(
        &self,
        api: &Api<K>,
        name: &str,
        write: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E>
    where
        K: Resource,
        T: ResourceExt,
    {
        finish(self.begin_at(api, name, SelfWrites::begin), write).await
    }

    /// An API whose path cannot be read, which kube does not make, is written to without a guard.
    fn begin_at<'a, K: Resource>(
        &self,
        api: &'a Api<K>,
        name: &str,
        begin: impl Fn(&Self, &Gvr, Option<&'a str>, &str) -> WriteInFlight,
    ) -> Option<WriteInFlight> {
        let (gvr, namespace) = of_path(api.resource_url())?;
        Some(begin(self, &gvr, namespace, name))
    }
}

async fn finish<T: ResourceExt, E>(
    guard: Option<WriteInFlight>,
    write: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let answer = write.await?;
    record(guard, &answer);
    Ok(answer)
}

/// An answer with the version that was sent says that nothing changed; that version may be anybody's, and its event still
/// on its way.
async fn replaced<K: Resource>(
    guard: Option<WriteInFlight>,
    sent: &K,
    write: impl Future<Output = kube::Result<K>>,
) -> kube::Result<K> {
    let answer = write.await?;
    if answer.meta().resource_version != sent.meta().resource_version {
        record(guard, &answer);
    }
    Ok(answer)
}

fn record(guard: Option<WriteInFlight>, answer: &impl ResourceExt) {
    if let (Some(guard), Some(version)) = (guard, answer.resource_version()) {
        guard.answered_as(&answer.name_any(), &version);
    }
}

/// Resource and namespace of a collection's path, `/api/v1/namespaces/shop/pods` or
/// `/apis/apps/v1/namespaces/shop/deployments`.
fn of_path(path: &str) -> Option<(Gvr, Option<&str>)> {
    let mut parts = path.trim_start_matches('/').split('/');
    let group = match parts.next()? {
        "api" => "",
        "apis" => parts.next()?,
        _ => return None,
    };
    let version = parts.next()?;
    let (namespace, resource) = match (parts.next()?, parts.next(), parts.next()) {
        (resource, None, None) => (None, resource),
        ("namespaces", Some(namespace), Some(resource)) => (Some(namespace), resource),
        _ => return None,
    };
    if parts.next().is_some() {
        return None;
    }
    let text = if group.is_empty() { format!("{version}/{resource}") } else { format!("{group}/{version}/{resource}") };
    Some((text.parse().ok()?, namespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_collections() {
        let read = |path| of_path(path).map(|(gvr, namespace)| (gvr.to_string(), namespace));
        assert_eq!(read("/api/v1/nodes"), Some(("v1/nodes".into(), None)));
        assert_eq!(read("/api/v1/namespaces"), Some(("v1/namespaces".into(), None)));
        assert_eq!(read("/api/v1/namespaces/shop/pods"), Some(("v1/pods".into(), Some("shop"))));
        let deployments = Some(("apps/v1/deployments".into(), Some("shop")));
        assert_eq!(read("/apis/apps/v1/namespaces/shop/deployments"), deployments);
        assert_eq!(read("/apis/example.test/v1/widgets"), Some(("example.test/v1/widgets".into(), None)));
        for odd in ["", "/", "/api", "/api/v1", "/version", "/api/v1/namespaces/shop", "/api/v1/namespaces/a/b/c"] {
            assert_eq!(read(odd), None, "{odd}");
        }
    }
}
