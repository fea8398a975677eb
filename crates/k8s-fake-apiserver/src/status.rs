//! The error answer of the API, `kind: Status`, with the texts of the real server.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Serialize;

/// An answer of kind `Status`: what the API server says when it refuses a request.
///
/// The server builds these by itself; tests build them for scripted faults
/// ([`FaultRule::status`](crate::FaultRule::status)). The constructors carry the reason and message that a real
/// kube-apiserver gives for that code.
///
/// ```
/// use k8s_fake_apiserver::Status;
/// let busy = Status::too_many_requests(7);
/// assert_eq!((busy.code(), busy.reason()), (429, "TooManyRequests"));
/// assert_eq!(busy.retry_after(), Some(7));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    // Boxed: it is the error of nearly every function here.
    inner: Box<Inner>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    code: u16,
    reason: Cow<'static, str>,
    message: String,
    details: Option<Details>,
    next: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Details {
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    uid: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    causes: Vec<Cause>,
    #[serde(rename = "retryAfterSeconds", skip_serializing_if = "is_zero")]
    retry_after_seconds: u32,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
struct Cause {
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: Cow<'static, str>,
    message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    field: String,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

#[derive(Serialize)]
struct Wire<'a> {
    kind: &'static str,
    #[serde(rename = "apiVersion")]
    api_version: &'static str,
    metadata: WireMeta<'a>,
    status: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u16>,
}

#[derive(Serialize)]
struct WireMeta<'a> {
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    next: Option<&'a str>,
}

impl Status {
    /// A status of this HTTP code, reason and message.
    pub fn new(code: u16, reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        let inner = Inner { code, reason: reason.into(), message: message.into(), details: None, next: None };
        Self { inner: Box::new(inner) }
    }

    /// 400 `BadRequest`.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 401 `Unauthorized`.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 403 `Forbidden`, in the words of RBAC: user, verb and resource as given.
    ///
    /// ```
    /// let no = k8s_fake_apiserver::Status::forbidden("list", "v1/pods");
    /// assert!(no.message().contains(r#"cannot list resource "pods" in API group """#));
    /// ```
    pub fn forbidden(verb: &str, resource: &str) -> Self {
        let (group, plural) = split_resource(resource);
        let mut status = Self::new(
            403,
            "Forbidden",
            format!(
                "{} is forbidden: User \"system:serviceaccount:default:default\" cannot {verb} resource \"{plural}\" \
                 in API group \"{group}\" at the cluster scope",
                qualified(group, plural)
            ),
        );
        status.inner.details = Some(Details { group: group.into(), kind: plural.into(), ..Details::default() });
        status
    }

    /// 410 `Expired`, as a list or a resumed watch gets it for a version that was compacted.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 429 `TooManyRequests` with `Retry-After`.
    pub fn too_many_requests(retry_after_seconds: u32) -> Self {
        Self::new(429, "TooManyRequests", "The apiserver is currently overloaded. Please try again later.")
            .with_retry_after(retry_after_seconds)
    }

    /// 500 `InternalError`.
    pub fn internal_error(message: &str) -> Self {
        let mut status = Self::new(500, "InternalError", format!("Internal error occurred: {message}"));
        status.inner.details =
            Some(Details { causes: vec![Cause { message: message.into(), ..Cause::default() }], ..Details::default() });
        status
    }

    /// 503 `ServiceUnavailable`.
    pub fn service_unavailable(message: impl Into<String>) -> Self {
        Self::new(503, "ServiceUnavailable", message)
    }

    /// Adds `retryAfterSeconds` to the details and a `Retry-After` header to the answer.
    #[must_use]
    pub fn with_retry_after(mut self, seconds: u32) -> Self {
        self.inner.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    /// The HTTP status code.
    pub fn code(&self) -> u16 {
        self.inner.code
    }

    /// The machine-readable reason; empty when there is none.
    pub fn reason(&self) -> &str {
        &self.inner.reason
    }

    /// The human-readable text.
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// The seconds after which the client may come back.
    pub fn retry_after(&self) -> Option<u32> {
        self.inner.details.as_ref().map(|d| d.retry_after_seconds).filter(|s| *s > 0)
    }

    /// The body, newline included.
    pub(crate) fn to_json(&self) -> Bytes {
        let wire = Wire {
            kind: "Status",
            api_version: "v1",
            metadata: WireMeta { next: self.inner.next.as_deref() },
            status: "Failure",
            message: &self.inner.message,
            reason: &self.inner.reason,
            details: self.inner.details.as_ref(),
            code: Some(self.inner.code),
        };
        render(&wire)
    }

    pub(crate) fn not_found(group: &str, plural: &str, name: &str) -> Self {
        Self::named(404, "NotFound", group, plural, name, format!("{} \"{name}\" not found", qualified(group, plural)))
    }

    pub(crate) fn already_exists(group: &str, plural: &str, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", qualified(group, plural));
        Self::named(409, "AlreadyExists", group, plural, name, message)
    }

    /// `what` is the plural for writes and the kind for delete preconditions: the real server does both.
    pub(crate) fn conflict(group: &str, what: &str, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", qualified(group, what));
        Self::named(409, "Conflict", group, what, name, message)
    }

    pub(crate) fn namespace_terminating(group: &str, plural: &str, name: &str, namespace: &str) -> Self {
        let message = format!(
            "{} \"{name}\" is forbidden: unable to create new content in namespace {namespace} because it is being terminated",
            qualified(group, plural)
        );
        let mut status = Self::named(403, "Forbidden", group, plural, name, message);
        status.inner.details.get_or_insert_default().causes.push(Cause {
            reason: "NamespaceTerminating".into(),
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".into(),
        });
        status
    }

    pub(crate) fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let mut list: Vec<String> = Vec::new();
        for error in errors.iter().map(FieldError::to_string) {
            if !list.contains(&error) {
                list.push(error);
            }
        }
        let text = if list.len() == 1 { list.concat() } else { format!("[{}]", list.join(", ")) };
        let message = format!("{} \"{name}\" is invalid: {text}", qualified(group, kind));
        let mut status = Self::named(422, "Invalid", group, kind, name, message);
        status.inner.details.get_or_insert_default().causes = errors
            .iter()
            .map(|e| Cause { reason: e.reason.into(), message: e.text.clone(), field: e.field.clone() })
            .collect();
        status
    }

    pub(crate) fn no_such_path() -> Self {
        let mut status = Self::new(404, "NotFound", "the server could not find the requested resource");
        status.inner.details = Some(Details::default());
        status
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        let mut status = Self::new(405, "MethodNotAllowed", message);
        status.inner.details = Some(Details::default());
        status
    }

    pub(crate) fn unprocessable() -> Self {
        let mut status = Self::new(422, "Invalid", "the server rejected our request due to an error in our request");
        status.inner.details = Some(Details::default());
        status
    }

    pub(crate) fn unsupported_media_type() -> Self {
        let mut status = Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type");
        status.inner.details = Some(Details::default());
        status
    }

    /// As for a body that is not in one of the formats.
    pub(crate) fn unknown_format(accepted: &str) -> Self {
        let text = "the body of the request was in an unknown format - accepted media types include";
        Self::new(415, "UnsupportedMediaType", format!("{text}: {accepted}"))
    }

    pub(crate) fn not_acceptable() -> Self {
        let message =
            "406: Not Acceptable\n\nAvailable representations: application/json, application/json;stream=watch";
        let mut status = Self::new(406, "NotAcceptable", message);
        status.inner.details = Some(Details::default());
        status
    }

    pub(crate) fn too_large_resource_version(wanted: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {wanted}, current: {current}");
        let mut status = Self::new(504, "Timeout", message);
        status.inner.details = Some(Details {
            causes: vec![Cause {
                reason: "ResourceVersionTooLarge".into(),
                message: "Too large resource version".into(),
                field: String::new(),
            }],
            retry_after_seconds: 1,
            ..Details::default()
        });
        status
    }

    /// The continue token that the answer offers for going on at the latest version.
    pub(crate) fn with_continue(mut self, token: String) -> Self {
        self.inner.next = Some(token);
        self
    }

    fn named(code: u16, reason: &'static str, group: &str, kind: &str, name: &str, message: String) -> Self {
        let mut status = Self::new(code, reason, message);
        status.inner.details =
            Some(Details { name: name.into(), group: group.into(), kind: kind.into(), ..Details::default() });
        status
    }
}

impl From<u16> for Status {
    /// A status with the reason and text that Kubernetes gives for a bare code.
    fn from(code: u16) -> Self {
        match code {
            400 => Self::bad_request("the server rejected our request for an unknown reason"),
            401 => Self::unauthorized(),
            403 => Self::new(403, "Forbidden", "forbidden: the request is not allowed"),
            404 => Self::no_such_path(),
            405 => Self::method_not_allowed(),
            409 => Self::new(409, "Conflict", "the server reported a conflict"),
            410 => Self::expired("The provided resource version is too old."),
            415 => Self::unsupported_media_type(),
            422 => Self::unprocessable(),
            429 => Self::too_many_requests(1),
            500 => Self::internal_error("the server is in trouble"),
            503 => Self::service_unavailable("the server is currently unable to handle the request"),
            504 => {
                Self::new(504, "Timeout", "Timeout: the server was unable to return a response in the time allotted")
            }
            other => Self::new(other, "", format!("the server responded with the status code {other}")),
        }
    }
}

/// One failed check of a field.
#[derive(Debug, Clone)]
pub(crate) struct FieldError {
    field: String,
    reason: &'static str,
    text: String,
}

impl FieldError {
    pub(crate) fn required(field: &str, text: &str) -> Self {
        Self { field: field.into(), reason: "FieldValueRequired", text: format!("Required value: {text}") }
    }

    /// `value` as the real server prints it: strings in quotes.
    pub(crate) fn invalid(field: &str, value: &str, text: &str) -> Self {
        Self { field: field.into(), reason: "FieldValueInvalid", text: format!("Invalid value: {value}: {text}") }
    }

    pub(crate) fn forbidden(field: &str, text: &str) -> Self {
        Self { field: field.into(), reason: "FieldValueForbidden", text: format!("Forbidden: {text}") }
    }

    pub(crate) fn unsupported(field: &str, value: &str, allowed: &[&str]) -> Self {
        let allowed: Vec<String> = allowed.iter().map(|a| format!("{a:?}")).collect();
        let text = format!("Unsupported value: {value}: supported values: {}", allowed.join(", "));
        Self { field: field.into(), reason: "FieldValueNotSupported", text }
    }
}

impl std::fmt::Display for FieldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.text)
    }
}

/// The answer to a delete that removed the object.
pub(crate) fn deleted(group: &str, plural: &str, name: &str, uid: &str) -> Bytes {
    let details =
        Details { name: name.into(), group: group.into(), kind: plural.into(), uid: uid.into(), ..Details::default() };
    render(&Wire {
        kind: "Status",
        api_version: "v1",
        metadata: WireMeta { next: None },
        status: "Success",
        message: "",
        reason: "",
        details: Some(&details),
        code: None,
    })
}

fn render(wire: &Wire<'_>) -> Bytes {
    // Strings, numbers and maps with string keys always serialise.
    let mut body = serde_json::to_vec(wire).unwrap_or_default();
    body.push(b'\n');
    body.into()
}

/// `pods`, or `ingresses.networking.k8s.io` for a group.
pub(crate) fn qualified(group: &str, what: &str) -> String {
    if group.is_empty() { what.to_owned() } else { format!("{what}.{group}") }
}

/// Group and plural of `v1/pods` or `networking.k8s.io/v1/ingresses`.
fn split_resource(resource: &str) -> (&str, &str) {
    let plural = resource.rsplit('/').next().unwrap_or_default();
    let group = match resource.split('/').count() {
        3.. => resource.split('/').next().unwrap_or_default(),
        _ => "",
    };
    (group, plural)
}
