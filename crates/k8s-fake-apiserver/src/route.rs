//! Path to resource.

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    Root,
    Version,
    Health,
    /// `/api`
    Core,
    /// `/apis`
    Groups,
    /// `/apis/{group}`
    Group(String),
    /// `/api/v1`, `/apis/{group}/{version}`
    Resources(String, String),
    Resource(Target),
    Unknown,
}

/// A resource path, taken apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    /// The old `/watch/` prefix.
    pub(crate) watch: bool,
}

impl Target {
    /// `v1/pods`, `apps/v1/deployments`.
    pub(crate) fn resource(&self) -> String {
        if self.group.is_empty() {
            format!("{}/{}", self.version, self.plural)
        } else {
            format!("{}/{}/{}", self.group, self.version, self.plural)
        }
    }
}

pub(crate) fn parse(path: &str) -> Route {
    let parts: Vec<String> =
        path.split('/').filter(|p| !p.is_empty()).map(|p| crate::query::decode(p, false)).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match parts.as_slice() {
        [] => Route::Root,
        ["version"] => Route::Version,
        ["healthz" | "livez" | "readyz", ..] => Route::Health,
        ["api"] => Route::Core,
        ["apis"] => Route::Groups,
        ["apis", group] => Route::Group((*group).into()),
        ["api", version] => Route::Resources(String::new(), (*version).into()),
        ["apis", group, version] => Route::Resources((*group).into(), (*version).into()),
        ["api", version, rest @ ..] => resource("", version, rest),
        ["apis", group, version, rest @ ..] => resource(group, version, rest),
        _ => Route::Unknown,
    }
}

fn resource(group: &str, version: &str, rest: &[&str]) -> Route {
    let (watch, rest) = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        rest => (false, rest),
    };
    let owned = |text: &&str| Some((*text).to_owned());
    let (namespace, plural, name, subresource) = match rest {
        ["namespaces", name, sub @ ("status" | "finalize")] => (None, "namespaces", owned(name), owned(sub)),
        ["namespaces", namespace, plural] => (owned(namespace), *plural, None, None),
        ["namespaces", namespace, plural, name] => (owned(namespace), *plural, owned(name), None),
        ["namespaces", namespace, plural, name, sub] => (owned(namespace), *plural, owned(name), owned(sub)),
        [plural] => (None, *plural, None, None),
        [plural, name] => (None, *plural, owned(name), None),
        [plural, name, sub] => (None, *plural, owned(name), owned(sub)),
        _ => return Route::Unknown,
    };
    Route::Resource(Target {
        group: group.into(),
        version: version.into(),
        plural: plural.into(),
        namespace,
        name,
        subresource,
        watch,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        let check = |path: &str, expected: &str| {
            let text = match parse(path) {
                Route::Resource(t) => format!(
                    "{} ns={} name={} sub={} watch={}",
                    t.resource(),
                    t.namespace.unwrap_or_default(),
                    t.name.unwrap_or_default(),
                    t.subresource.unwrap_or_default(),
                    t.watch
                ),
                other => format!("{other:?}"),
            };
            assert_eq!(text, expected, "{path}");
        };
        check("/", "Root");
        check("/readyz/etcd", "Health");
        check("/api", "Core");
        check("/apis/apps", "Group(\"apps\")");
        check("/apis/apps/v1", "Resources(\"apps\", \"v1\")");
        check("/api/v1/pods", "v1/pods ns= name= sub= watch=false");
        check("/api/v1/namespaces", "v1/namespaces ns= name= sub= watch=false");
        check("/api/v1/namespaces/a", "v1/namespaces ns= name=a sub= watch=false");
        check("/api/v1/namespaces/a/status", "v1/namespaces ns= name=a sub=status watch=false");
        check("/api/v1/namespaces/a/pods", "v1/pods ns=a name= sub= watch=false");
        check("/api/v1/namespaces/a/pods/b/status", "v1/pods ns=a name=b sub=status watch=false");
        check("/api/v1/watch/namespaces/a/pods", "v1/pods ns=a name= sub= watch=true");
        check("/apis/apps/v1/namespaces/a/deployments/d%2Dx", "apps/v1/deployments ns=a name=d-x sub= watch=false");
        check("/metrics", "Unknown");
        check("/api/v1/a/b/c/d/e/f", "Unknown");
    }
}
