//! From an object to the keys of an index.

use std::ops::ControlFlow;

use k8s_packed::{Object, Path};
use k8s_types::{IndexExpression, IndexKey, IndexKeyBuilder};

use crate::{
    error::IndexerError,
    expression::{Expression, First},
    normalize::Buffer,
};

/// The most keys that one object has in one index. Further values of a multi-valued expression are left out and
/// reported by [`Keys::overflow`].
pub const MAX_KEYS: usize = 1000;

/// The compiled plan of one index: expressions that form a composite key, in order.
///
/// # The keys of an object
///
/// Each expression gives one segment of the key: the text of its first result, or, if it is multi-valued, each of its
/// distinct results in turn, and the object has all combinations as keys (at most [`MAX_KEYS`]).
///
/// An expression without a value ends the key there: the object is filed under the segments before it, a *partial*
/// key. Reads by that many segments or fewer find it, exact reads never do, and no key of a former version of the
/// object stays behind. If already the first value is missing, the key has no segment.
///
/// ```
/// use k8s_indexer::Indexer;
/// use k8s_packed::object;
/// use k8s_types::{IndexExpression, IndexKey};
///
/// let by_host = Indexer::new([
///     IndexExpression::new("metadata.namespace"),
///     IndexExpression::multi_valued("spec.rules[*].host"),
/// ])?;
/// let ingress = object!({
///     "metadata": {"namespace": "shop"},
///     "spec": {"rules": [{"host": "a.example"}, {"host": "b.example"}, {"host": "a.example"}]},
/// });
/// let keys = by_host.keys_of(&ingress);
/// assert_eq!(keys.as_slice(), [
///     IndexKey::from_segments(["shop", "a.example"]),
///     IndexKey::from_segments(["shop", "b.example"]),
/// ]);
///
/// let bare = object!({"metadata": {"namespace": "shop"}});
/// let keys = by_host.keys_of(&bare);
/// assert_eq!(keys.as_slice(), [IndexKey::from_segments(["shop"])]);
/// assert_eq!(keys.missing(), Some(1));
///
/// let error = Indexer::new(["metadata.name", "metadata.labels['a"]).unwrap_err();
/// assert_eq!(error.position(), 1);
/// assert_eq!(error.error().to_string(), "unclosed quote at column 17");
/// # Ok::<(), k8s_indexer::IndexerError>(())
/// ```
#[derive(Debug)]
pub struct Indexer {
    components: Box<[Component]>,
    multi_valued: bool,
}

#[derive(Debug)]
struct Component {
    expression: Expression,
    multi_valued: bool,
}

impl Indexer {
    /// Compiles an index of these expressions. Without any, every object has the key without segments.
    ///
    /// # Errors
    ///
    /// The first expression that is wrong, with its position.
    pub fn new<I>(expressions: I) -> Result<Indexer, IndexerError>
    where
        I: IntoIterator<Item: Into<IndexExpression>>,
    {
        let compile = |(position, expression): (usize, I::Item)| {
            let given: IndexExpression = expression.into();
            let expression = given.text().parse().map_err(|error| IndexerError::new(position, error))?;
            Ok(Component { expression, multi_valued: given.is_multi_valued() })
        };
        let components: Box<[Component]> =
            expressions.into_iter().enumerate().map(compile).collect::<Result<_, IndexerError>>()?;
        let multi_valued = components.iter().any(|component| component.multi_valued);
        Ok(Indexer { components, multi_valued })
    }

    /// The number of expressions, which is that of an exact key's segments.
    pub fn arity(&self) -> usize {
        self.components.len()
    }

    /// The expressions in order.
    pub fn expressions(&self) -> impl ExactSizeIterator<Item = &Expression> {
        self.components.iter().map(|component| &component.expression)
    }

    /// Whether an object can have more than one key.
    pub fn is_multi_valued(&self) -> bool {
        self.multi_valued
    }

    /// The first expression that an ignored path leaves without a value, by position, and that path. See
    /// [`Expression::covered_by`].
    pub fn covered_by<'p>(&self, ignored: &'p [Path]) -> Option<(usize, &'p Path)> {
        self.expressions().enumerate().find_map(|(i, expression)| Some((i, expression.covered_by(ignored)?)))
    }

    /// Puts the object's keys into `keys`, replacing what is there: at least one, and each once.
    ///
    /// Cost: for plain paths one walk through the packed bytes and one allocation for each key, nothing else once
    /// `keys` has been used.
    pub fn keys(&self, object: &Object, keys: &mut Keys) {
        keys.clear();
        if self.multi_valued {
            self.collect_values(object, keys);
            keys.combine();
            return;
        }
        for (i, component) in self.components.iter().enumerate() {
            let found = component.expression.with_first(object, |first| {
                match first {
                    First::Text(text) => keys.builder.push(text),
                    First::Composite => keys.not_scalar += 1,
                    First::Missing => {}
                }
                matches!(first, First::Text(_))
            });
            if !found {
                keys.missing = Some(i);
                break;
            }
        }
        keys.keys.push(keys.builder.key());
    }

    /// The object's keys in memory of their own. For one object; use [`keys`](Indexer::keys) for many.
    pub fn keys_of(&self, object: &Object) -> Keys {
        let mut keys = Keys::default();
        self.keys(object, &mut keys);
        keys
    }

    fn collect_values(&self, object: &Object, keys: &mut Keys) {
        let mut buffer = Buffer::new();
        for (i, component) in self.components.iter().enumerate() {
            keys.values.begin();
            let mut overflow = false;
            let mut not_scalar = 0;
            component.expression.visit(object, |scalar| {
                match scalar.text(&mut buffer) {
                    Some(text) => overflow |= !keys.values.add(text),
                    None => not_scalar += 1,
                }
                match component.multi_valued && !overflow {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            });
            keys.overflow |= overflow;
            keys.not_scalar += not_scalar;
            if !keys.values.end() {
                keys.missing = Some(i);
                break;
            }
        }
    }
}

/// The keys of one object, and what was noticed on the way. Used again and again, it allocates nothing but the keys.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    keys: Vec<IndexKey>,
    missing: Option<usize>,
    not_scalar: usize,
    overflow: bool,
    builder: IndexKeyBuilder,
    values: Values,
}

impl Keys {
    /// Empty.
    pub fn new() -> Keys {
        Keys::default()
    }

    /// The keys, each once, in the order of the values.
    pub fn as_slice(&self) -> &[IndexKey] {
        &self.keys
    }

    /// The keys.
    pub fn iter(&self) -> std::slice::Iter<'_, IndexKey> {
        self.keys.iter()
    }

    /// Takes the keys out and keeps the memory for the next object.
    pub fn drain(&mut self) -> impl Iterator<Item = IndexKey> {
        self.keys.drain(..)
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is no key, as before the first object.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The first expression without a value, by position; none if the keys are exact. The keys have as many segments.
    pub fn missing(&self) -> Option<usize> {
        self.missing
    }

    /// How many arrays and maps were found where a key needs a single value.
    pub fn not_scalar(&self) -> usize {
        self.not_scalar
    }

    /// Whether there were more values or combinations than [`MAX_KEYS`], so that some are left out.
    pub fn overflow(&self) -> bool {
        self.overflow
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.missing = None;
        self.not_scalar = 0;
        self.overflow = false;
        self.builder.clear();
        self.values.clear();
    }

    /// All combinations of the collected values, the last component turning fastest, up to the cap.
    fn combine(&mut self) {
        let Keys { keys, builder, values, overflow, .. } = self;
        values.turns.clear();
        values.turns.resize(values.components.len(), 0);
        loop {
            if keys.len() == MAX_KEYS {
                *overflow = true;
                return;
            }
            builder.clear();
            for (component, turn) in values.turns.iter().enumerate() {
                builder.push(values.text(component, *turn));
            }
            keys.push(builder.key());
            if !values.turn() {
                return;
            }
        }
    }
}

impl<'a> IntoIterator for &'a Keys {
    type Item = &'a IndexKey;
    type IntoIter = std::slice::Iter<'a, IndexKey>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The distinct values of each component, one after another in one text.
#[derive(Clone, Debug, Default)]
struct Values {
    text: String,
    spans: Vec<std::ops::Range<usize>>,
    components: Vec<std::ops::Range<usize>>,
    /// The spans of the component at work, ordered by their text.
    sorted: Vec<usize>,
    /// The first span of the component at work.
    start: usize,
    /// Which value of each component is in the present combination.
    turns: Vec<usize>,
}

impl Values {
    fn clear(&mut self) {
        self.text.clear();
        self.spans.clear();
        self.components.clear();
    }

    fn begin(&mut self) {
        self.sorted.clear();
        self.start = self.spans.len();
    }

    /// Adds a value unless it is there already. False if there is no room for it.
    fn add(&mut self, value: &str) -> bool {
        let found = self.sorted.binary_search_by(|&span| self.text[self.spans[span].clone()].cmp(value));
        let Err(place) = found else { return true };
        if self.sorted.len() == MAX_KEYS {
            return false;
        }
        let start = self.text.len();
        self.text.push_str(value);
        self.sorted.insert(place, self.spans.len());
        self.spans.push(start..self.text.len());
        true
    }

    /// Ends the component. False if it has no value.
    fn end(&mut self) -> bool {
        let component = self.start..self.spans.len();
        let found = !component.is_empty();
        if found {
            self.components.push(component);
        }
        found
    }

    /// Goes to the next combination. False if there is none.
    fn turn(&mut self) -> bool {
        for (turn, component) in self.turns.iter_mut().zip(&self.components).rev() {
            *turn += 1;
            if *turn < component.len() {
                return true;
            }
            *turn = 0;
        }
        false
    }

    fn text(&self, component: usize, value: usize) -> &str {
        let span = self.components[component].start + value;
        &self.text[self.spans[span].clone()]
    }
}
