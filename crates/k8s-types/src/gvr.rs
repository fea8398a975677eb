//! Group, version and resource: which kind of objects is meant.

use std::{borrow::Cow, fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{
    error::ParseError,
    names::{is_dns_label, is_dns_subdomain},
};

/// A kind of objects by API group, version and plural resource name.
///
/// The text form is `VERSION/PLURAL` for the core group and `GROUP/VERSION/PLURAL` for all others; serde uses it too.
///
/// ```
/// use k8s_types::Gvr;
///
/// let pods: Gvr = "v1/pods".parse()?;
/// assert_eq!((pods.group(), pods.version(), pods.resource()), ("", "v1", "pods"));
///
/// let ingresses: Gvr = "networking.k8s.io/v1/ingresses".parse()?;
/// assert_eq!(ingresses.api_version(), "networking.k8s.io/v1");
/// # Ok::<(), k8s_types::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gvr {
    group: Box<str>,
    version: Box<str>,
    resource: Box<str>,
}

impl Gvr {
    /// A resource of three parts; the core group is `""`. The parts are taken as they are; a configuration that uses
    /// them checks them as parsing does.
    pub fn new(group: impl Into<Box<str>>, version: impl Into<Box<str>>, resource: impl Into<Box<str>>) -> Gvr {
        Gvr { group: group.into(), version: version.into(), resource: resource.into() }
    }

    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The version within the group.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The plural resource name, lower case.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// The `apiVersion` that objects of this resource carry: `v1` or `apps/v1`.
    pub fn api_version(&self) -> Cow<'_, str> {
        if self.group.is_empty() {
            Cow::Borrowed(&self.version)
        } else {
            Cow::Owned(format!("{}/{}", self.group, self.version))
        }
    }

    /// Checks the three parts as parsing of the text form does.
    ///
    /// # Errors
    ///
    /// The error of parsing [`Display`](fmt::Display)'s text.
    pub fn validate(&self) -> Result<(), ParseError> {
        let text = self.to_string();
        let parsed: Gvr = text.parse()?;
        if parsed == *self {
            return Ok(());
        }
        // A slash inside a part moves the borders.
        Err(ParseError::at(&text, 0, "slash inside a part"))
    }
}

impl fmt::Display for Gvr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.group.is_empty() {
            write!(f, "{}/", self.group)?;
        }
        write!(f, "{}/{}", self.version, self.resource)
    }
}

impl FromStr for Gvr {
    type Err = ParseError;

    /// Parses `VERSION/PLURAL` or `GROUP/VERSION/PLURAL`.
    ///
    /// # Errors
    ///
    /// A kind instead of a plural (upper case), a group without a version, a subresource, characters that no name of
    /// the API has.
    fn from_str(text: &str) -> Result<Gvr, ParseError> {
        const FORM: &str = "write VERSION/PLURAL for the core group, else GROUP/VERSION/PLURAL";
        let parts: Vec<&str> = text.split('/').collect();
        let (group, version, resource) = match *parts.as_slice() {
            [version, resource] => ("", version, resource),
            [group, version, resource] => (group, version, resource),
            [first, second, third, ..] => {
                let offset = first.len() + second.len() + third.len() + 2;
                return Err(ParseError::at(text, offset, "more than three parts").hint(FORM));
            }
            _ => return Err(ParseError::at(text, text.len(), "version missing").hint(FORM)),
        };
        let version_at = if group.is_empty() { 0 } else { group.len() + 1 };
        let resource_at = version_at + version.len() + 1;
        let three = parts.len() == 3;
        if three && group.is_empty() {
            return Err(ParseError::at(text, 0, "empty group").hint(FORM));
        }
        if looks_like_version(group) {
            return Err(ParseError::at(text, resource_at - 1, "subresource in a resource name"));
        }
        if !group.is_empty() && !is_dns_subdomain(group) {
            return Err(ParseError::at(text, 0, format!("invalid group {group:?}")));
        }
        if version.is_empty() {
            return Err(ParseError::at(text, version_at, "empty version").hint(FORM));
        }
        if !is_dns_label(version) || (!three && !looks_like_version(version)) {
            let error = ParseError::at(text, version_at, format!("invalid version {version:?}"));
            return Err(error.hint(FORM));
        }
        if resource.is_empty() {
            return Err(ParseError::at(text, resource_at, "empty resource").hint(FORM));
        }
        if resource.chars().any(|c| c.is_ascii_uppercase()) {
            return Err(ParseError::at(text, resource_at, "resource in upper case")
                .hint("write the plural in lower case, as in 'apps/v1/deployments', not the kind"));
        }
        if !is_dns_subdomain(resource) {
            let error = ParseError::at(text, resource_at, format!("invalid resource {resource:?}"));
            return Err(error);
        }
        Ok(Gvr::new(group, version, resource))
    }
}

/// `v1`, `v2beta1` and their like: what a version of the core group looks like and a group never does.
fn looks_like_version(text: &str) -> bool {
    text.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) && !text.contains('.')
}

impl Serialize for Gvr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Gvr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Gvr, D::Error> {
        let text = Cow::<'_, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::Gvr;

    fn check_error(text: &str, expected: &str) {
        let error = text.parse::<Gvr>().expect_err(text);
        assert_eq!(error.to_string(), expected, "{text:?}");
    }

    #[test]
    fn core_and_group_forms_round_trip() {
        for text in [
            "v1/pods",
            "apps/v1/deployments",
            "networking.k8s.io/v1/ingresses",
            "example.com/v1alpha1/widgets",
            "example.com/stable/widgets",
        ] {
            let gvr: Gvr = text.parse().expect(text);
            assert_eq!(gvr.to_string(), text);
            assert_eq!(serde_json::to_value(&gvr).expect("json"), text);
            assert_eq!(serde_json::from_value::<Gvr>(text.into()).expect("json"), gvr);
            assert_eq!(gvr.validate(), Ok(()));
        }
        assert_eq!(Gvr::new("", "v1", "pods"), "v1/pods".parse().expect("pods"));
    }

    #[test]
    fn wrong_texts_say_what_and_where() {
        const FORM: &str = "write VERSION/PLURAL for the core group, else GROUP/VERSION/PLURAL";
        check_error("", &format!("version missing at column 1: {FORM}"));
        check_error("pods", &format!("version missing at column 5: {FORM}"));
        check_error("/v1/pods", &format!("empty group at column 1: {FORM}"));
        check_error("v1/", &format!("empty resource at column 4: {FORM}"));
        check_error("apps//x", &format!("empty version at column 6: {FORM}"));
        check_error(
            "networking.k8s.io/ingresses",
            &format!("invalid version \"networking.k8s.io\" at column 1: {FORM}"),
        );
        check_error(
            "apps/v1/Deployment",
            "resource in upper case at column 9: \
             write the plural in lower case, as in 'apps/v1/deployments', not the kind",
        );
        check_error("v1/pods/status", "subresource in a resource name at column 8");
        check_error("apps/v1/deployments/scale", &format!("more than three parts at column 20: {FORM}"));
        check_error("v1/po ds", "invalid resource \"po ds\" at column 4");
        check_error("Apps/v1/pods", "invalid group \"Apps\" at column 1");
    }

    #[test]
    fn parts_given_one_by_one_are_checked_later() {
        assert!(Gvr::new("", "", "").validate().is_err());
        assert!(Gvr::new("apps/v1", "deployments", "scale").validate().is_err());
        assert!(Gvr::new("", "apps/v1", "deployments").validate().is_err());
        assert!(Gvr::new("apps", "v1", "deployments").validate().is_ok());
    }
}
