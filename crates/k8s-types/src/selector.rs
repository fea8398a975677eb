//! Label selectors: the API's structure, the grammar of its query strings, and matching.

mod parse;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt};

use k8s_packed::Object;
use serde::{Deserialize, Serialize};

use crate::{
    error::ConfigError,
    names::{is_label_key, is_label_value},
};

/// A label selector: all requirements must hold. Without any it selects everything.
///
/// In serde it has the API's shape (`matchLabels` and `matchExpressions`); as text it is the grammar of `kubectl -l`
/// and of the API's `labelSelector` parameter: `app=web,tier in (a, b),!canary`. [`Display`](fmt::Display) writes the
/// text that goes to the server.
///
/// ```
/// use k8s_types::LabelSelector;
///
/// let selector: LabelSelector = "app=web, tier notin (cache,db), !canary".parse()?;
/// assert_eq!(selector.to_string(), "app=web,tier notin (cache,db),!canary");
/// assert!(selector.matches_with(|key| (key == "app").then_some("web")));
///
/// let json = serde_json::json!({"matchLabels": {"app": "web"}});
/// let selector: LabelSelector = serde_json::from_value(json)?;
/// assert_eq!(selector, "app=web".parse()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LabelSelector {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    match_labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    match_expressions: Vec<LabelRequirement>,
}

/// One entry of a selector's `matchExpressions`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LabelRequirement {
    key: String,
    operator: LabelOperator,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    values: Vec<String>,
}

/// How a [`LabelRequirement`] compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum LabelOperator {
    /// The label is there and has one of the values.
    In,
    /// The label is not there, or has none of the values.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is not there.
    DoesNotExist,
    /// The label is an integer greater than the one value. Text form only: the API's structure has no such operator.
    Gt,
    /// The label is an integer less than the one value. Text form only, as `Gt`.
    Lt,
}

impl LabelSelector {
    /// The selector without requirements, which selects everything.
    pub fn new() -> LabelSelector {
        LabelSelector::default()
    }

    /// Requires the label to have this value. A second value for the same key is a further requirement, not a
    /// replacement.
    #[must_use]
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> LabelSelector {
        self.add_equal(key.into(), value.into());
        self
    }

    /// Adds a requirement.
    #[must_use]
    pub fn require(mut self, requirement: LabelRequirement) -> LabelSelector {
        self.match_expressions.push(requirement);
        self
    }

    fn add_equal(&mut self, key: String, value: String) {
        match self.match_labels.get(&key) {
            Some(present) if *present == value => {}
            Some(_) => {
                let requirement = LabelRequirement::new(key, LabelOperator::In, [value]);
                self.match_expressions.push(requirement);
            }
            None => {
                self.match_labels.insert(key, value);
            }
        }
    }

    /// The labels that must have exactly these values.
    pub fn match_labels(&self) -> &BTreeMap<String, String> {
        &self.match_labels
    }

    /// The other requirements.
    pub fn match_expressions(&self) -> &[LabelRequirement] {
        &self.match_expressions
    }

    /// Whether there is no requirement, so that everything matches.
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }

    /// Whether the object's labels fulfil all requirements.
    pub fn matches(&self, object: &Object) -> bool {
        self.matches_with(|key| object.label(key))
    }

    /// Whether labels that are found by this function fulfil all requirements.
    pub fn matches_with<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.match_labels.iter().all(|(key, value)| label(key) == Some(value))
            && self.match_expressions.iter().all(|requirement| requirement.matches(label(&requirement.key)))
    }

    /// Checks what the structure can say and the API refuses. A selector from text is always valid.
    ///
    /// # Errors
    ///
    /// Names the requirement (`matchExpressions[1]`): an invalid key or value, values where the operator takes none,
    /// none where it needs some, a bound that is no integer.
    pub fn validate(&self) -> Result<(), ConfigError> {
        for (key, value) in &self.match_labels {
            let check = check_key(key).and_then(|()| check_value(value));
            check.map_err(|message| ConfigError::new("matchLabels", message))?;
        }
        for (i, requirement) in self.match_expressions.iter().enumerate() {
            requirement.check().map_err(|message| ConfigError::new(format!("matchExpressions[{i}]"), message))?;
        }
        Ok(())
    }
}

impl LabelRequirement {
    /// A requirement of these parts; [`LabelSelector::validate`] checks them.
    pub fn new<V>(key: impl Into<String>, operator: LabelOperator, values: V) -> LabelRequirement
    where
        V: IntoIterator<Item: Into<String>>,
    {
        LabelRequirement { key: key.into(), operator, values: values.into_iter().map(Into::into).collect() }
    }

    /// The label's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The comparison.
    pub fn operator(&self) -> LabelOperator {
        self.operator
    }

    /// The values to compare with; none for existence, one for `Gt` and `Lt`.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Whether a label with this value (or its absence) fulfils the requirement.
    pub fn matches(&self, label: Option<&str>) -> bool {
        let listed = |label: &str| self.values.iter().any(|value| value == label);
        match self.operator {
            LabelOperator::In => label.is_some_and(listed),
            LabelOperator::NotIn => !label.is_some_and(listed),
            LabelOperator::Exists => label.is_some(),
            LabelOperator::DoesNotExist => label.is_none(),
            LabelOperator::Gt => self.numbers(label).is_some_and(|(own, bound)| own > bound),
            LabelOperator::Lt => self.numbers(label).is_some_and(|(own, bound)| own < bound),
        }
    }

    /// The label and the bound as integers; none if either is no integer.
    fn numbers(&self, label: Option<&str>) -> Option<(i64, i64)> {
        Some((label?.parse().ok()?, self.values.first()?.parse().ok()?))
    }

    fn check(&self) -> Result<(), String> {
        check_key(&self.key)?;
        self.values.iter().try_for_each(|value| check_value(value))?;
        let operator = self.operator;
        match (operator, self.values.as_slice()) {
            (LabelOperator::In | LabelOperator::NotIn, []) => Err(format!("{operator:?} without values")),
            (LabelOperator::Exists | LabelOperator::DoesNotExist, [_, ..]) => Err(format!("{operator:?} with values")),
            (LabelOperator::Gt | LabelOperator::Lt, [bound]) => match bound.parse::<i64>() {
                Ok(_) => Ok(()),
                Err(_) => Err(format!("{bound:?} is no integer")),
            },
            (LabelOperator::Gt | LabelOperator::Lt, _) => Err(format!("{operator:?} needs one value")),
            _ => Ok(()),
        }
    }
}

fn check_key(key: &str) -> Result<(), String> {
    match is_label_key(key) {
        true => Ok(()),
        false => Err(format!("invalid label key {key:?}")),
    }
}

fn check_value(value: &str) -> Result<(), String> {
    match is_label_value(value) {
        true => Ok(()),
        false => Err(format!("invalid label value {value:?}")),
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (key, value) in &self.match_labels {
            write!(f, "{separator}{key}={value}")?;
            separator = ",";
        }
        for requirement in &self.match_expressions {
            write!(f, "{separator}{requirement}")?;
            separator = ",";
        }
        Ok(())
    }
}

impl fmt::Display for LabelRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LabelRequirement { key, operator, values } = self;
        match (operator, values.as_slice()) {
            (LabelOperator::Exists, _) => f.write_str(key),
            (LabelOperator::DoesNotExist, _) => write!(f, "!{key}"),
            (LabelOperator::NotIn, [value]) => write!(f, "{key}!={value}"),
            (LabelOperator::Gt, _) => write!(f, "{key}>{}", values.concat()),
            (LabelOperator::Lt, _) => write!(f, "{key}<{}", values.concat()),
            (LabelOperator::In, _) => write!(f, "{key} in ({})", values.join(",")),
            (LabelOperator::NotIn, _) => write!(f, "{key} notin ({})", values.join(",")),
        }
    }
}
