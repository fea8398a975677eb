//! Each structure against a plain model, with earlier versions held across later changes.
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{HashTrie, Ids, OrdTree, Slab};

fn check_slab(slab: &Slab<u8>, model: &BTreeMap<u32, u8>) {
    let known = (0..64).chain(model.keys().copied());
    for id in known {
        assert_eq!(slab.get(id), model.get(&id), "id {id}");
    }
    if model.is_empty() {
        assert_eq!(slab.node_bytes(), 0);
    }
}

fn check_trie(trie: &HashTrie, model: &[(u64, u32)]) {
    for &(hash, id) in model {
        assert_eq!(trie.find(hash, |found| found == id), Some(id));
        assert_eq!(trie.find(!hash, |found| found == id), None);
    }
}

fn check_tree(tree: &OrdTree, model: &[u32]) {
    assert_eq!(tree.len(), model.len());
    assert!(tree.iter().eq(model.iter().copied()));
    assert_eq!(tree.iter().len(), model.len());
    let part = model.len() / 3..model.len() * 2 / 3;
    assert!(tree.range(part.clone()).eq(model[part].iter().copied()));
    assert_eq!(tree.range(model.len()..model.len() + 5).len(), 0);
    for (position, &id) in model.iter().enumerate() {
        assert_eq!(tree.get(position), Some(id));
        assert_eq!(tree.partition_point(|other| other < id), position);
        assert_eq!(tree.partition_point(|other| other <= id), position + 1);
    }
    assert_eq!(tree.get(model.len()), None);
}

proptest! {
    #![proptest_config(test_support::cases(48))]

    #[test]
    fn slab_is_a_map_and_old_versions_stay(
        steps in prop::collection::vec(
            (any::<bool>(), prop_oneof![0u32..40, 0u32..4000, 0u32..2_000_000], any::<u8>()), 1..400),
    ) {
        let (mut slab, mut model, mut held) = (Slab::default(), BTreeMap::new(), vec![]);
        for (step, (put, id, value)) in steps.into_iter().enumerate() {
            if put {
                prop_assert_eq!(slab.set(id, value), model.insert(id, value));
            } else {
                let id = model.keys().nth(usize::from(value)).copied().unwrap_or(id);
                if let Some(value) = slab.get_mut(id) {
                    *value ^= 1;
                }
                let expected = model.remove(&id).map(|value| value ^ 1);
                prop_assert_eq!(slab.take(id), expected);
            }
            if step % 16 == 0 {
                held.push((slab.clone(), model.clone()));
            }
        }
        held.push((slab.clone(), model.clone()));
        for (slab, model) in &held {
            check_slab(slab, model);
        }
        for &id in model.keys() {
            slab.take(id);
        }
        check_slab(&slab, &BTreeMap::new());
    }

    #[test]
    fn trie_finds_each_id_under_its_hash_even_if_all_hashes_are_equal(
        mask in prop_oneof![
            Just(u64::MAX), Just(0x3f << 32), Just(0xff00_0000_0000_0000), Just(0xf), Just(0)],
        steps in prop::collection::vec((0..10u8, any::<u64>(), any::<usize>()), 1..1200),
    ) {
        let (mut trie, mut model, mut held) = (HashTrie::default(), vec![], vec![]);
        for (step, (kind, hash, pick)) in steps.into_iter().enumerate() {
            // Growing and shrinking take turns.
            let growing = step / 400 % 2 == 0;
            if (kind < 7) == growing {
                let (hash, id) = (hash & mask, step as u32);
                trie.insert(hash, id);
                model.push((hash, id));
            } else if !model.is_empty() {
                let (hash, id) = model.swap_remove(pick % model.len());
                prop_assert!(trie.remove(hash, id));
                prop_assert!(!trie.remove(hash, id));
            }
            if step % 128 == 0 {
                held.push((trie.clone(), model.clone()));
            }
        }
        for (trie, model) in &held {
            check_trie(trie, model);
        }
        check_trie(&trie, &model);
        for (hash, id) in model {
            trie.remove(hash, id);
        }
        prop_assert_eq!(trie.node_bytes(), HashTrie::default().node_bytes());
    }

    #[test]
    fn tree_keeps_the_order_and_old_versions_stay(
        order in 0..4u8,
        steps in prop::collection::vec((0..10u8, any::<u16>()), 1..3000),
    ) {
        let (mut tree, mut model, mut held) = (OrdTree::default(), Vec::<u32>::new(), vec![]);
        for (step, (kind, pick)) in steps.into_iter().enumerate() {
            let growing = step / 1200 % 2 == 0;
            if (kind < 8) == growing {
                let id = match order {
                    0 => step as u32,
                    1 => 100_000 - step as u32,
                    _ => u32::from(pick),
                };
                let position = tree.partition_point(|other| other < id);
                prop_assert_eq!(position, model.partition_point(|&other| other < id));
                if tree.get(position) != Some(id) {
                    tree.insert(position, id);
                    model.insert(position, id);
                }
            } else if !model.is_empty() {
                let position = usize::from(pick) % model.len();
                prop_assert_eq!(tree.remove(position), Some(model.remove(position)));
            }
            if step % 256 == 0 {
                held.push((tree.clone(), model.clone()));
            }
        }
        for (tree, model) in &held {
            check_tree(tree, model);
        }
        check_tree(&tree, &model);
        while tree.len() > 0 {
            tree.remove(tree.len() / 2);
        }
        prop_assert_eq!(tree.node_bytes(), 0);
        prop_assert_eq!(tree.remove(0), None);
    }
}

#[test]
fn what_arrives_in_order_is_packed_full() {
    let mut tree = OrdTree::default();
    for id in 0..100_000 {
        tree.insert(tree.len(), id);
    }
    let per_id = tree.node_bytes() as f64 / 100_000.0;
    assert!(per_id < 4.8, "{per_id} bytes an id");
}

#[test]
fn leaves_of_the_trie_are_well_filled_at_any_size() {
    let mut trie = HashTrie::default();
    let mut hash = 1_u64;
    for id in 0..60_000 {
        hash = hash.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        trie.insert(hash, id);
        if id > 1000 && id % 997 == 0 {
            let per_id = trie.node_bytes() as f64 / f64::from(id);
            assert!(per_id < 24.0, "{per_id} bytes an id at {id}");
        }
    }
}

#[test]
fn the_smallest_free_id_comes_first() {
    let mut ids = Ids::default();
    assert_eq!([ids.take(), ids.take(), ids.take()], [0, 1, 2]);
    ids.give_back(1);
    ids.give_back(0);
    assert_eq!([ids.take(), ids.take(), ids.take()], [0, 1, 3]);
    assert_eq!(ids.bound(), 4);
    (0..4).for_each(|id| ids.give_back(id));
    assert_eq!(ids.bound(), 0);
}
