//! Which requests a fault or a count is about.

use crate::verb::Verb;

/// What is known of a request before it is served.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestFacts<'a> {
    pub(crate) verb: Verb,
    pub(crate) resource: &'a str,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
    pub(crate) subresource: Option<&'a str>,
    pub(crate) query: &'a [(String, String)],
    pub(crate) client: &'a str,
}

/// A description of requests, for [faults](crate::Faults::on) and for the [journal](crate::Journal::count).
///
/// Begun by a verb ([`List`], [`Watch`], [`Get`], [`Create`], [`Update`], [`Patch`], [`Delete`], [`Write`], [`Any`]) and
/// narrowed down by the methods here.
///
/// ```
/// use k8s_fake_apiserver::{List, Any};
/// let pages = List::of("v1/pods").namespace("shop").with_query("limit", "500");
/// let everything_of_b = Any::request().client("b");
/// ```
#[derive(Debug, Clone, Default)]
pub struct RequestMatcher {
    verbs: Vec<Verb>,
    resource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    subresource: Option<String>,
    query: Vec<(String, Option<String>)>,
    client: Option<String>,
}

impl RequestMatcher {
    fn new(verbs: &[Verb], resource: Option<&str>) -> Self {
        Self { verbs: verbs.to_vec(), resource: resource.map(str::to_owned), ..Self::default() }
    }

    /// Only requests for this namespace. Requests for all namespaces are not among them.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only requests for the object of this name.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Only requests for this subresource, such as `status`.
    #[must_use]
    pub fn subresource(mut self, subresource: &str) -> Self {
        self.subresource = Some(subresource.into());
        self
    }

    /// Only requests with this query parameter of this value.
    #[must_use]
    pub fn with_query(mut self, name: &str, value: &str) -> Self {
        self.query.push((name.into(), Some(value.into())));
        self
    }

    /// Only requests without this query parameter.
    #[must_use]
    pub fn without_query(mut self, name: &str) -> Self {
        self.query.push((name.into(), None));
        self
    }

    /// Only requests of clients whose `User-Agent` begins with this; see
    /// [`FakeApiServer::client_as`](crate::FakeApiServer::client_as).
    #[must_use]
    pub fn client(mut self, agent: &str) -> Self {
        self.client = Some(agent.into());
        self
    }

    pub(crate) fn matches(&self, request: &RequestFacts<'_>) -> bool {
        let fits = |wanted: &Option<String>, found: Option<&str>| wanted.is_none() || wanted.as_deref() == found;
        let query = |(name, wanted): &(String, Option<String>)| {
            let found = request.query.iter().find(|(n, _)| n == name).map(|(_, v)| v);
            found == wanted.as_ref()
        };
        (self.verbs.is_empty() || self.verbs.contains(&request.verb))
            && fits(&self.resource, Some(request.resource))
            && fits(&self.namespace, request.namespace)
            && fits(&self.name, request.name)
            && fits(&self.subresource, request.subresource)
            && self.client.as_ref().is_none_or(|c| request.client.starts_with(c.as_str()))
            && self.query.iter().all(query)
    }
}

#[track_caller]
fn assert_resource(text: &str) {
    let parts: Vec<&str> = text.split('/').collect();
    let lower =
        |part: &str| part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.'));
    // Without a text: discovery and the like.
    let sound =
        text.is_empty() || matches!(parts.len(), 2 | 3) && parts.iter().all(|part| !part.is_empty() && lower(part));
    let hint = if parts.len() == 4 { "; a subresource is chosen by `subresource`" } else { "" };
    assert!(sound, "{text:?} is no resource such as `v1/pods` or `apps/v1/deployments`{hint}");
}

macro_rules! verbs {
    ($($(#[$doc:meta])* $name:ident => [$($verb:ident),*];)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $name;

        impl $name {
            /// Requests of this sort for a resource such as `v1/pods` or `apps/v1/deployments`; with an empty text those
            /// that are about no objects, such as discovery.
            ///
            /// # Panics
            ///
            /// The text cannot be a resource: a matcher that matches nothing would make a test that tests nothing.
            #[track_caller]
            pub fn of(resource: &str) -> RequestMatcher {
                assert_resource(resource);
                RequestMatcher::new(&[$(Verb::$verb),*], Some(resource))
            }

            /// Requests of this sort for any resource.
            pub fn request() -> RequestMatcher {
                RequestMatcher::new(&[$(Verb::$verb),*], None)
            }
        }

        impl From<$name> for RequestMatcher {
            fn from(_: $name) -> Self {
                $name::request()
            }
        }
    )*};
}

verbs! {
    /// Reads of one object.
    Get => [Get];
    /// Reads of a collection, pages included.
    List => [List];
    /// Watches.
    Watch => [Watch];
    /// Creations.
    Create => [Create];
    /// Replacements (`PUT`).
    Update => [Update];
    /// Patches of any form.
    Patch => [Patch];
    /// Deletions of one object or of a collection.
    Delete => [Delete, DeleteCollection];
    /// Everything that changes objects.
    Write => [Create, Update, Patch, Delete, DeleteCollection];
    /// All requests; by [`request`](Self::request) discovery too.
    Any => [];
}
