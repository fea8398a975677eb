//! The verbs, a file each.

pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod patch;
pub(crate) mod prepare;
pub(crate) mod update;
pub(crate) mod watch;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};

use crate::body::ResponseBody;
use crate::core::{Core, View};
use crate::fault::StreamPlan;
use crate::kind::ResourceKind;
use crate::log::TableId;
use crate::query::Query;
use crate::represent::{Form, write_object};
use crate::route::Target;
use crate::status::Status;
use crate::stored::Stored;

/// What a request does, in the words of the Kubernetes audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read a collection.
    List,
    /// Follow a collection or one object.
    Watch,
    /// Make an object.
    Create,
    /// Replace an object.
    Update,
    /// Change an object.
    Patch,
    /// Delete one object.
    Delete,
    /// Delete a collection.
    DeleteCollection,
    /// Anything that is not about objects: discovery, health, version.
    Other,
}

impl Verb {
    /// Whether the verb changes objects.
    pub fn is_write(self) -> bool {
        matches!(self, Self::Create | Self::Update | Self::Patch | Self::Delete | Self::DeleteCollection)
    }

    /// The name in lower case: `get`, `deletecollection`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A request for objects of a kind that exists.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) core: Arc<Core>,
    pub(crate) view: View,
    pub(crate) kind: Arc<ResourceKind>,
    pub(crate) table: TableId,
    pub(crate) target: Target,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) form: Form,
    pub(crate) plan: StreamPlan,
}

pub(crate) type Answer = Result<Response<ResponseBody>, Status>;

impl Call {
    pub(crate) fn name(&self) -> &str {
        self.target.name.as_deref().unwrap_or_default()
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        self.target.namespace.as_deref().filter(|_| self.kind.namespaced)
    }

    pub(crate) fn key(&self) -> Box<str> {
        crate::stored::key(self.kind.namespaced.then(|| self.namespace().unwrap_or_default()), self.name())
    }

    pub(crate) fn not_found(&self) -> Status {
        Status::not_found(&self.kind.group, &self.kind.plural, self.name())
    }

    pub(crate) fn object(&self, code: StatusCode, object: &Stored) -> Response<ResponseBody> {
        let mut out = Vec::with_capacity(object.json.len() + 1);
        write_object(&mut out, self.form, &self.kind, object, &self.core.clock, true);
        out.push(b'\n');
        json(code, out)
    }
}

pub(crate) fn json(code: StatusCode, body: impl Into<Bytes>) -> Response<ResponseBody> {
    answer(code, "application/json", ResponseBody::full(body))
}

pub(crate) fn answer(code: StatusCode, content_type: &'static str, body: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(content_type));
    response.headers_mut().insert(http::header::CACHE_CONTROL, http::HeaderValue::from_static("no-cache, private"));
    response
}

pub(crate) fn refuse(status: &Status) -> Response<ResponseBody> {
    let code = StatusCode::from_u16(status.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(code, status.to_json());
    if let Some(seconds) = status.retry_after() {
        response.headers_mut().insert(http::header::RETRY_AFTER, seconds.into());
    }
    response
}
