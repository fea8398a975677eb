//! From a long history that shows something to a short one.

/// Leaves out items as long as the rest still fails, halves first and single ones last, until none can be spared or
/// `budget` attempts are used up.
pub(crate) fn shrink<T: Clone>(items: &[T], budget: &mut usize, fails: &mut dyn FnMut(&[T]) -> bool) -> Vec<T> {
    let mut kept = items.to_vec();
    let mut size = kept.len().div_ceil(2).max(1);
    loop {
        let before = kept.len();
        let mut at = 0;
        while at < kept.len() {
            let end = kept.len().min(at + size);
            let fewer = [&kept[..at], &kept[end..]].concat();
            if !spend(budget) {
                return kept;
            }
            if fails(&fewer) {
                kept = fewer;
            } else {
                at = end;
            }
        }
        if size > 1 {
            size = size.div_ceil(2);
        } else if kept.len() == before {
            return kept;
        }
    }
}

/// Takes the first simpler form of a thing that still fails, again and again.
pub(crate) fn simplify<T: Clone>(
    thing: &T,
    budget: &mut usize,
    simpler: impl Fn(&T) -> Vec<T>,
    mut fails: impl FnMut(&T) -> bool,
) -> T {
    let mut kept = thing.clone();
    while let Some(next) = simpler(&kept).into_iter().find(|next| spend(budget) && fails(next)) {
        kept = next;
    }
    kept
}

fn spend(budget: &mut usize) -> bool {
    let is_left = *budget > 0;
    *budget = budget.saturating_sub(1);
    is_left
}
