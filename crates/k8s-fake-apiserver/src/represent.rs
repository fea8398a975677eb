//! Content negotiation: whole objects, their metadata alone, or a table for kubectl.

use http::HeaderMap;
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::kind::ResourceKind;
use crate::status::Status;
use crate::stored::Stored;

/// What the client asked for by its `Accept` header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Full,
    /// `as=PartialObjectMetadata`
    Metadata,
    /// `as=PartialObjectMetadataList`
    MetadataList,
    Table,
}

impl Form {
    /// The first form of the header that the server has. No header means everything is accepted.
    pub(crate) fn negotiate(headers: &HeaderMap) -> Result<Self, Status> {
        let mut any = false;
        for header in headers.get_all(http::header::ACCEPT) {
            for range in header.to_str().unwrap_or_default().split(',') {
                any = true;
                if let Some(form) = Self::of(range) {
                    return Ok(form);
                }
            }
        }
        if any { Err(Status::not_acceptable()) } else { Ok(Self::Full) }
    }

    fn of(range: &str) -> Option<Self> {
        let mut parts = range.split(';').map(str::trim);
        if !matches!(parts.next()?, "application/json" | "application/*" | "*/*") {
            return None;
        }
        let (mut form, mut version_ok) = (Self::Full, true);
        for part in parts {
            match part.split_once('=').unwrap_or((part, "")) {
                ("as", "Table") => form = Self::Table,
                ("as", "PartialObjectMetadata") => form = Self::Metadata,
                ("as", "PartialObjectMetadataList") => form = Self::MetadataList,
                ("as", _) => return None,
                ("v", version) => version_ok = version == "v1",
                _ => {}
            }
        }
        version_ok.then_some(form)
    }
}

/// The object by itself, as an answer or inside a watch event.
pub(crate) fn write_object(
    out: &mut Vec<u8>,
    form: Form,
    kind: &ResourceKind,
    object: &Stored,
    clock: &Clock,
    columns: bool,
) {
    match form {
        Form::Full => out.extend_from_slice(&object.json),
        Form::Metadata | Form::MetadataList => write_metadata(out, object),
        Form::Table => {
            let version = object.revision.to_string();
            write_table_head(out, kind, &json!({ "resourceVersion": version }), columns);
            write_row(out, object, clock);
            out.extend_from_slice(b"]}");
        }
    }
}

/// The object as an item of a list: typed lists leave its type out.
pub(crate) fn write_item(out: &mut Vec<u8>, form: Form, kind: &ResourceKind, object: &Stored, clock: &Clock) {
    match form {
        Form::Full if kind.rules.built_in => {
            out.push(b'{');
            out.extend_from_slice(object.without_type());
        }
        Form::Full => out.extend_from_slice(&object.json),
        Form::Metadata | Form::MetadataList => write_metadata(out, object),
        Form::Table => write_row(out, object, clock),
    }
}

/// Everything of a list before its first item; `]}` ends it.
pub(crate) fn write_list_head(out: &mut Vec<u8>, form: Form, kind: &ResourceKind, metadata: &Value) {
    match form {
        Form::Full => {
            let head = format!(
                "{{\"kind\":\"{}List\",\"apiVersion\":\"{}\",\"metadata\":{metadata},\"items\":[",
                kind.kind,
                kind.api_version()
            );
            out.extend_from_slice(head.as_bytes());
        }
        Form::Metadata | Form::MetadataList => {
            let head = format!(
                "{{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{metadata},\"items\":["
            );
            out.extend_from_slice(head.as_bytes());
        }
        Form::Table => write_table_head(out, kind, metadata, true),
    }
}

/// A bookmark's object. Typed kinds show the empty fields that the real server's types cannot leave out.
pub(crate) fn bookmark(form: Form, kind: &ResourceKind, revision: u64, end_of_initial_events: bool) -> Vec<u8> {
    let annotations =
        if end_of_initial_events { ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}" } else { "" };
    let metadata = format!("\"metadata\":{{\"resourceVersion\":\"{revision}\"{annotations}}}");
    match form {
        Form::Full => format!("{}{metadata}{}}}", kind.head, empty_fields(kind)).into_bytes(),
        Form::Metadata | Form::MetadataList => {
            format!("{{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",{metadata}}}").into_bytes()
        }
        Form::Table => {
            let mut out = Vec::new();
            write_table_head(&mut out, kind, &json!({ "resourceVersion": revision.to_string() }), false);
            out.extend_from_slice(b"]}");
            out
        }
    }
}

fn empty_fields(kind: &ResourceKind) -> &'static str {
    match kind.resource() {
        "v1/pods" => r#","spec":{"containers":null},"status":{}"#,
        "v1/services" | "networking.k8s.io/v1/ingresses" => r#","spec":{},"status":{"loadBalancer":{}}"#,
        "v1/namespaces" | "v1/nodes" => r#","spec":{},"status":{}"#,
        "v1/persistentvolumeclaims" => r#","spec":{"resources":{}},"status":{}"#,
        "v1/events" => {
            r#","involvedObject":{},"source":{},"firstTimestamp":null,"lastTimestamp":null,"eventTime":null,"reportingComponent":"","reportingInstance":"""#
        }
        "apps/v1/deployments" => {
            r#","spec":{"replicas":0,"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"strategy":{}},"status":{}"#
        }
        "apps/v1/replicasets" => {
            r#","spec":{"replicas":0,"selector":null,"template":{"metadata":{},"spec":{"containers":null}}},"status":{"replicas":0}"#
        }
        "apps/v1/statefulsets" | "apps/v1/daemonsets" => {
            r#","spec":{"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"updateStrategy":{}},"status":{}"#
        }
        "batch/v1/jobs" => r#","spec":{"template":{"metadata":{},"spec":{"containers":null}}},"status":{}"#,
        "batch/v1/cronjobs" => {
            r#","spec":{"schedule":"","jobTemplate":{"metadata":{},"spec":{"template":{"metadata":{},"spec":{"containers":null}}}}},"status":{}"#
        }
        "discovery.k8s.io/v1/endpointslices" => r#","addressType":"","endpoints":null,"ports":null"#,
        "networking.k8s.io/v1/networkpolicies" => r#","spec":{"podSelector":{}}"#,
        "networking.k8s.io/v1/ingressclasses" | "coordination.k8s.io/v1/leases" => r#","spec":{}"#,
        _ => "",
    }
}

fn write_metadata(out: &mut Vec<u8>, object: &Stored) {
    out.extend_from_slice(b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":");
    out.extend_from_slice(object.metadata());
    out.push(b'}');
}

fn write_table_head(out: &mut Vec<u8>, kind: &ResourceKind, metadata: &Value, columns: bool) {
    let columns = if columns {
        let name = format!("Name of the {}.", kind.kind);
        json!([
            {"name": "Name", "type": "string", "format": "name", "description": name, "priority": 0},
            {"name": "Age", "type": "string", "format": "", "description": "Time since the object was created.", "priority": 0}
        ])
    } else {
        Value::Null
    };
    let head = format!(
        "{{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{metadata},\"columnDefinitions\":{columns},\"rows\":["
    );
    out.extend_from_slice(head.as_bytes());
}

fn write_row(out: &mut Vec<u8>, object: &Stored, clock: &Clock) {
    let metadata: Value = serde_json::from_slice(object.metadata()).unwrap_or_default();
    let age =
        metadata["creationTimestamp"].as_str().map_or_else(|| "<unknown>".to_owned(), |created| age(created, clock));
    out.extend_from_slice(format!("{{\"cells\":[\"{}\",\"{age}\"],\"object\":", object.name()).as_bytes());
    write_metadata(out, object);
    out.push(b'}');
}

fn age(created: &str, clock: &Clock) -> String {
    let now = clock.now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs();
    let Some(seconds) = crate::clock::parse(created).map(|c| now.saturating_sub(c)) else { return "<unknown>".into() };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_headers() {
        let check = |accept: &str, expected: Option<Form>| {
            let mut headers = HeaderMap::new();
            headers.insert(http::header::ACCEPT, accept.parse().unwrap());
            assert_eq!(Form::negotiate(&headers).ok(), expected, "{accept}");
        };
        check("application/json", Some(Form::Full));
        check("*/*", Some(Form::Full));
        check("application/vnd.kubernetes.protobuf,application/json", Some(Form::Full));
        check(
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
            Some(Form::Table),
        );
        check("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", Some(Form::MetadataList));
        check(
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
            Some(Form::Full),
        );
        check("text/html", None);
        assert_eq!(Form::negotiate(&HeaderMap::new()).unwrap(), Form::Full);
    }
}
