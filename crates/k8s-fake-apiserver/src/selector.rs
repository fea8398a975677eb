//! Label and field selectors as a request carries them, and the filter that they make.

mod field;
mod label;

pub(crate) use field::FieldSelector;
pub(crate) use label::LabelSelector;

use crate::kind::ResourceKind;
use crate::status::Status;
use crate::stored::Stored;

/// What a list, a watch or a deletecollection is about.
#[derive(Debug, Clone)]
pub(crate) struct Filter {
    prefix: String,
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Filter {
    pub(crate) fn new(
        kind: &ResourceKind,
        namespace: Option<&str>,
        labels: &str,
        fields: &str,
    ) -> Result<Self, Status> {
        let prefix = match namespace {
            Some(namespace) if kind.namespaced => format!("{namespace}/"),
            _ => String::new(),
        };
        let labels = LabelSelector::parse(labels).map_err(Status::bad_request)?;
        let fields = FieldSelector::parse(kind, fields).map_err(Status::bad_request)?;
        Ok(Self { prefix, labels, fields })
    }

    /// The keys of all objects that can match begin with this.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether there is a selector: lists then cannot say how many items remain.
    pub(crate) fn selects(&self) -> bool {
        !self.labels.is_empty() || !self.fields.is_empty()
    }

    pub(crate) fn matches(&self, object: &Stored) -> bool {
        object.key.starts_with(&self.prefix) && self.labels.matches(&object.labels) && self.fields.matches(object)
    }
}
