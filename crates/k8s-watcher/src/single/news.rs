//! What a callback is to be told of one object: the latest state, and a delete that lies between.
//!
//! Pure. However fast the object changes, at most a delete and one state wait.

use k8s_types::Object;

/// The object as it is, and as the user knows it.
#[derive(Clone, Debug, Default)]
pub(super) struct News {
    current: Option<Object>,
    /// Counts the objects that had the name: a new uid is another one.
    incarnation: u64,
    /// Which of them the user was told last and in which state, if it was not told that it is gone.
    told: Option<(u64, Object)>,
    /// The present state is news.
    is_news: bool,
}

impl News {
    pub(super) fn current(&self) -> Option<&Object> {
        self.current.as_ref()
    }

    /// The object came to be, or another one under its name.
    pub(super) fn appeared(&mut self, object: Object) {
        self.incarnation += 1;
        self.current = Some(object);
        self.is_news = true;
    }

    /// The same object in another state; whether that is anything that the user wants to hear of.
    pub(super) fn moved_on(&mut self, object: Object, is_news: bool) {
        self.current = Some(object);
        self.is_news |= is_news;
    }

    pub(super) fn gone(&mut self) {
        self.current = None;
        self.is_news = true;
    }

    /// The user learns of the present state by other means.
    pub(super) fn know(&mut self) -> Option<Object> {
        self.is_news = false;
        self.told = self.current.clone().map(|object| (self.incarnation, object));
        self.current.clone()
    }

    /// How much there is to tell.
    pub(super) fn waiting(&self) -> usize {
        let mut rehearsal = self.clone();
        std::iter::from_fn(|| rehearsal.next()).count()
    }

    /// What is to be told next.
    pub(super) fn next(&mut self) -> Option<Option<Object>> {
        let is_gone = |(told, _): &(u64, Object)| self.current.is_none() || *told != self.incarnation;
        if self.told.as_ref().is_some_and(is_gone) {
            self.told = None;
            return Some(None);
        }
        if !std::mem::take(&mut self.is_news) {
            return None;
        }
        let object = self.current.clone()?;
        // It may have gone and come back to what it was.
        if self.told.as_ref().is_some_and(|(_, told)| told.same_content(&object)) {
            return None;
        }
        self.told = Some((self.incarnation, object.clone()));
        Some(Some(object))
    }
}

#[cfg(test)]
mod tests {
    use k8s_packed::object;
    use proptest::prelude::*;

    use super::*;

    fn version(n: u64) -> Object {
        object!({"metadata": {"name": "a", "resourceVersion": n.to_string()}, "data": n})
    }

    fn told(news: &mut News) -> Vec<Option<String>> {
        let version = |o: Object| o.resource_version().unwrap_or_default().to_owned();
        std::iter::from_fn(|| news.next()).map(|object| object.map(version)).collect()
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn the_latest_wins_and_a_delete_between_is_kept() {
        let mut news = News::default();
        assert_eq!(told(&mut news), []);
        news.appeared(version(1));
        news.moved_on(version(2), true);
        assert_eq!(told(&mut news), [some("2")]);
        news.moved_on(version(3), false);
        assert_eq!(told(&mut news), []);
        news.moved_on(version(4), true);
        news.moved_on(version(5), false);
        assert_eq!(told(&mut news), [some("5")]);
        news.gone();
        news.appeared(version(6));
        news.gone();
        news.appeared(version(7));
        assert_eq!(told(&mut news), [None, some("7")]);
        news.appeared(version(8)); // another uid, no delete seen
        assert_eq!(told(&mut news), [None, some("8")]);
        news.gone();
        assert_eq!(told(&mut news), [None]);
        news.appeared(version(9));
        news.gone(); // it came and went: nothing to say
        assert_eq!(told(&mut news), []);
    }

    #[test]
    fn what_is_again_as_it_was_told_is_not_told_again() {
        let as_of = |version: u64, data: u64| object!({"metadata": {"name": "a", "resourceVersion": version.to_string()}, "data": data});
        let mut news = News::default();
        news.appeared(as_of(1, 1));
        assert_eq!(told(&mut news), [some("1")]);
        news.moved_on(as_of(2, 2), true);
        news.moved_on(as_of(3, 1), true);
        assert_eq!(told(&mut news), []);
        news.moved_on(as_of(4, 2), true);
        assert_eq!(told(&mut news), [some("4")]);
        // Another object in the same state is another object.
        news.appeared(as_of(5, 2));
        assert_eq!(told(&mut news), [None, some("5")]);
    }

    #[test]
    fn what_is_known_by_other_means_is_not_told() {
        let mut news = News::default();
        news.appeared(version(1));
        assert!(news.know().is_some());
        assert_eq!(told(&mut news), []);
        news.gone();
        assert_eq!(told(&mut news), [None]);
        assert!(news.know().is_none());
        news.appeared(version(2));
        assert_eq!(told(&mut news), [some("2")]);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Appear,
        Move(bool),
        Gone,
        /// The callback is called this often, as far as there is something.
        Tell(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            Just(Step::Appear),
            any::<bool>().prop_map(Step::Move),
            Just(Step::Gone),
            (0usize..3).prop_map(Step::Tell)
        ];
        prop::collection::vec(step, 1..40)
    }

    proptest! {
        /// Against a list of all that happened: what is told is a subsequence of it, deletes and creates alternate,
        /// and at the end the user knows the last state that was news, or a later one.
        #[test]
        fn what_is_told_leads_to_the_present(steps in steps()) {
            let mut news = News::default();
            let (mut history, mut known): (Vec<Option<u64>>, Vec<Option<u64>>) = (vec![None], vec![None]);
            let (mut present, mut wanted) = (None, None);
            let mut n = 0;
            let tell = |news: &mut News, known: &mut Vec<Option<u64>>, times: usize| {
                for _ in 0..times {
                    let Some(told) = news.next() else { break };
                    known.push(told.map(|o| o.resource_version().unwrap_or_default().parse::<u64>().unwrap_or_default()));
                }
            };
            for step in steps {
                n += 1;
                match step {
                    Step::Appear => {
                        if present.is_some() { history.push(None); }
                        news.appeared(version(n));
                        (present, wanted) = (Some(n), Some(n));
                        history.push(present);
                    }
                    Step::Move(is_news) if present.is_some() => {
                        news.moved_on(version(n), is_news);
                        present = Some(n);
                        if is_news { wanted = present; }
                        history.push(present);
                    }
                    Step::Gone if present.is_some() => {
                        news.gone();
                        (present, wanted) = (None, None);
                        history.push(None);
                    }
                    Step::Move(_) | Step::Gone => {}
                    Step::Tell(times) => tell(&mut news, &mut known, times),
                }
            }
            let (waiting, before) = (news.waiting(), known.len());
            tell(&mut news, &mut known, 100);
            prop_assert_eq!(known.len() - before, waiting);
            let last = *known.last().unwrap();
            prop_assert!(last == present || last >= wanted, "{known:?} of {history:?}");
            prop_assert_eq!(last.is_some(), present.is_some());
            let mut rest = history.iter();
            prop_assert!(known.iter().all(|told| rest.any(|h| h == told)), "{known:?} of {history:?}");
            prop_assert!(known.windows(2).all(|w| w[0].is_some() || w[1].is_some()), "{known:?}");
        }
    }
}
