// SPDX-License-Identifier: GPL-2.0

//! Nodes in order, which are where their owners have put them.
//!
//! A [`Tree`] is a treap: a binary tree that is in order and, at the same time, a heap by random
//! priorities, so that it is balanced whatever the keys are. A node knows the one above it, too. So
//! these take O(log n) steps, however many nodes they move:
//!
//! - to insert a node, and to take one out that is known;
//! - to cut off all up to a key, and to put a tree behind another;
//! - to find out whether a node is in a tree.
//!
//! Nothing is allocated, nothing recurses.

use core::ptr;

/// A node of a tree.
///
/// Its links belong to the tree that it is in.
pub(super) struct Node {
    /// Where it belongs.
    key: u64,
    /// Nodes with a higher priority are above it.
    priority: u32,
    /// The one above it, null for none.
    up: *mut Node,
    /// The nodes below and before it.
    left: *mut Node,
    /// The nodes below and behind it.
    right: *mut Node,
}

impl Node {
    /// A node that is in no tree.
    pub(super) fn new(key: u64) -> Self {
        Self {
            key,
            priority: 0,
            up: ptr::null_mut(),
            left: ptr::null_mut(),
            right: ptr::null_mut(),
        }
    }
}

/// Nodes in order.
///
/// # Invariants
///
/// - `root` is null, or a node above which there is none. The nodes that `left` and `right` of a node
///   lead to have that node above them, and no higher priority. All nodes to the left of a node come
///   before it, all to the right of it behind it.
/// - `first` is the first node, null for none.
/// - A node stays in place while it is in the tree, and is in no other one.
pub(super) struct Tree {
    root: *mut Node,
    first: *mut Node,
}

// SAFETY: The nodes are reached only by a thread that may reach the tree.
unsafe impl Send for Tree {}

impl Tree {
    /// No nodes.
    pub(super) const fn new() -> Self {
        // INVARIANT: There are no nodes.
        Self {
            root: ptr::null_mut(),
            first: ptr::null_mut(),
        }
    }

    /// Returns whether there are no nodes.
    pub(super) fn is_empty(&self) -> bool {
        self.root.is_null()
    }

    /// Returns the key of the first node.
    pub(super) fn first_key(&self) -> Option<u64> {
        if self.first.is_null() {
            return None;
        }
        // SAFETY: By the type invariants, the first node is in place.
        Some(unsafe { (*self.first).key })
    }

    /// Puts a node behind all that have no greater key. To be of use, the tree has to be sorted.
    ///
    /// # Safety
    ///
    /// `node` must be valid, in no tree, and stay in place while it is in this one.
    pub(super) unsafe fn insert(&mut self, node: *mut Node, priority: u32) {
        // SAFETY: `node` is valid by the safety requirements.
        let key = unsafe { (*node).key };
        let mut up: *mut Node = ptr::null_mut();
        let mut below = self.root;
        let mut before_up = true;
        let mut is_first = true;
        // SAFETY: By the type invariants, what is in the tree is in place.
        while !below.is_null() && unsafe { (*below).priority } >= priority {
            up = below;
            // SAFETY: As above.
            before_up = unsafe { (*below).key } > key;
            is_first &= before_up;
            below = if before_up {
                // SAFETY: As above.
                unsafe { (*below).left }
            } else {
                // SAFETY: As above.
                unsafe { (*below).right }
            };
        }
        // SAFETY: It is part of this tree.
        let (before, behind) = unsafe { split(below, key) };
        // INVARIANT: The nodes below `up` have smaller priorities than the node, and are divided into
        // those before it and those behind it.
        // SAFETY: `node` is valid by the safety requirements; the others are in the tree.
        unsafe {
            (*node).priority = priority;
            (*node).up = up;
            (*node).left = before;
            (*node).right = behind;
            set_up(before, node);
            set_up(behind, node);
            if up.is_null() {
                self.root = node;
            } else if before_up {
                (*up).left = node;
            } else {
                (*up).right = node;
            }
        }
        if is_first && before.is_null() {
            // INVARIANT: It is before all whose way it went, and nothing is before it.
            self.first = node;
        }
    }

    /// Takes a node out.
    ///
    /// # Safety
    ///
    /// `node` must be in this tree.
    pub(super) unsafe fn remove(&mut self, node: *mut Node) {
        // INVARIANT: The nodes below it take its place, in order; if none was before it, the next one
        // is the first of those that were right of it, or else the one above it.
        // SAFETY: By the safety requirements and the type invariants all these are in place.
        unsafe {
            let (up, left, right) = ((*node).up, (*node).left, (*node).right);
            if self.first == node {
                self.first = if right.is_null() { up } else { leftmost(right) };
            }
            let below = join(left, right);
            set_up(below, up);
            if up.is_null() {
                self.root = below;
            } else if (*up).left == node {
                (*up).left = below;
            } else {
                (*up).right = below;
            }
        }
    }

    /// Takes out the first node.
    pub(super) fn pop(&mut self) -> Option<*mut Node> {
        let first = self.first;
        if first.is_null() {
            return None;
        }
        // SAFETY: It is in the tree.
        unsafe { self.remove(first) };
        Some(first)
    }

    /// Cuts off all whose key is not greater than `key`. To be of use, the tree has to be sorted.
    pub(super) fn cut(&mut self, key: u64) -> Self {
        if self.first_key().is_none_or(|first| first > key) {
            return Self::new();
        }
        // SAFETY: It is this tree, which ends here.
        let (before, behind) = unsafe { split(self.root, key) };
        // INVARIANT: The first node is among what was cut off. Each node is in one of the two.
        let cut = Self {
            root: before,
            first: self.first,
        };
        self.root = behind;
        // SAFETY: It is a tree, or null.
        self.first = unsafe { leftmost(behind) };
        cut
    }

    /// Puts all nodes of another tree behind those of this one.
    pub(super) fn append(&mut self, other: Self) {
        if self.first.is_null() {
            self.first = other.first;
        }
        // INVARIANT: The nodes are in this tree from here on.
        // SAFETY: Both are trees, and end here.
        self.root = unsafe { join(self.root, other.root) };
    }

    /// Returns whether a node is in this tree.
    ///
    /// # Safety
    ///
    /// `node` must be in some tree that nobody changes.
    pub(super) unsafe fn contains(&self, mut node: *mut Node) -> bool {
        loop {
            // SAFETY: By the safety requirements and the type invariants of that tree.
            let up = unsafe { (*node).up };
            if up.is_null() {
                return self.root == node;
            }
            node = up;
        }
    }
}

/// Says what is above a node, unless it is null.
///
/// # Safety
///
/// `node` must be null, or valid and the caller's.
unsafe fn set_up(node: *mut Node, up: *mut Node) {
    if !node.is_null() {
        // SAFETY: By the safety requirements.
        unsafe { (*node).up = up };
    }
}

/// Returns the first node of a tree, null for none.
///
/// # Safety
///
/// `tree` must be null, or a node that is in a tree.
unsafe fn leftmost(mut tree: *mut Node) -> *mut Node {
    let mut first = tree;
    while !tree.is_null() {
        first = tree;
        // SAFETY: It is in the tree, and so in place.
        tree = unsafe { (*tree).left };
    }
    first
}

/// Divides a tree into what has no greater key than `key` and the rest; the roots of both have
/// nothing above them.
///
/// # Safety
///
/// `tree` must be null, or a node of a tree, of which it and what is below are the caller's.
unsafe fn split(mut tree: *mut Node, key: u64) -> (*mut Node, *mut Node) {
    let (mut before, mut behind) = (ptr::null_mut(), ptr::null_mut());
    // The last of what is before, and the first of what is behind, so far.
    let (mut last, mut next): (*mut Node, *mut Node) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: By the safety requirements, all that is reached from `tree` is in place and the
    // caller's.
    unsafe {
        while !tree.is_null() {
            if (*tree).key <= key {
                if last.is_null() {
                    before = tree;
                } else {
                    (*last).right = tree;
                }
                (*tree).up = last;
                last = tree;
                tree = (*tree).right;
            } else {
                if next.is_null() {
                    behind = tree;
                } else {
                    (*next).left = tree;
                }
                (*tree).up = next;
                next = tree;
                tree = (*tree).left;
            }
        }
        if !last.is_null() {
            (*last).right = ptr::null_mut();
        }
        if !next.is_null() {
            (*next).left = ptr::null_mut();
        }
    }
    (before, behind)
}

/// Joins two trees, of which the one comes before the other; the root has nothing above it.
///
/// # Safety
///
/// Both must be null, or nodes of trees, of which they and what is below are the caller's.
unsafe fn join(mut before: *mut Node, mut behind: *mut Node) -> *mut Node {
    let mut root = ptr::null_mut();
    let mut up: *mut Node = ptr::null_mut();
    let mut behind_up = false;
    // SAFETY: By the safety requirements, all that is reached from the two is in place and the
    // caller's.
    unsafe {
        loop {
            let rest = if before.is_null() {
                Some(behind)
            } else if behind.is_null() {
                Some(before)
            } else {
                None
            };
            let upper = match rest {
                Some(rest) => rest,
                None if (*before).priority >= (*behind).priority => before,
                None => behind,
            };
            if up.is_null() {
                root = upper;
            } else if behind_up {
                (*up).right = upper;
            } else {
                (*up).left = upper;
            }
            set_up(upper, up);
            if rest.is_some() {
                return root;
            }
            up = upper;
            behind_up = upper == before;
            if behind_up {
                before = (*upper).right;
            } else {
                behind = (*upper).left;
            }
        }
    }
}

#[cfg(unit_tests)]
#[kernel::macros::kunit_tests(linux_waiters_tree)]
mod tests {
    use super::*;
    use kernel::prelude::*;

    /// Random numbers that are the same in every run (xorshift64).
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0
        }

        /// Returns a number below `bound`.
        fn below(&mut self, bound: usize) -> usize {
            (self.next() >> 8) as usize % bound
        }

        fn priority(&mut self) -> u32 {
            (self.next() >> 32) as u32
        }
    }

    /// Checks the invariants, and that the nodes are these, in this order; returns how many are above
    /// one at most.
    fn check(tree: &Tree, expected: &[*mut Node]) -> usize {
        let mut depth = 0;
        let mut at = tree.first;
        for &node in expected {
            assert!(at == node);
            // SAFETY: The nodes of these tests stay in place until their ends.
            unsafe {
                assert!(tree.contains(node));
                for below in [(*node).left, (*node).right] {
                    if !below.is_null() {
                        assert!((*below).up == node);
                        assert!((*below).priority <= (*node).priority);
                    }
                }
                let mut above = 0;
                let mut up = (*node).up;
                while !up.is_null() {
                    above += 1;
                    up = (*up).up;
                }
                depth = depth.max(above);
                // The next one.
                if (*at).right.is_null() {
                    let mut from = at;
                    at = (*at).up;
                    while !at.is_null() && (*at).right == from {
                        from = at;
                        at = (*at).up;
                    }
                } else {
                    at = leftmost((*at).right);
                }
            }
        }
        assert!(at.is_null());
        assert!(tree.is_empty() == expected.is_empty());
        depth
    }

    /// Makes nodes.
    fn nodes(count: usize) -> Result<KVec<Node>> {
        let mut nodes = KVec::with_capacity(count, GFP_KERNEL)?;
        for _ in 0..count {
            nodes.push(Node::new(0), GFP_KERNEL)?;
        }
        Ok(nodes)
    }

    /// Puts a node into a model, behind those that have no greater key.
    fn model_insert(model: &mut KVec<*mut Node>, node: *mut Node) -> Result {
        model.push(node, GFP_KERNEL)?;
        let mut at = model.len() - 1;
        // SAFETY: The nodes stay in place.
        while at > 0 && unsafe { (*model[at - 1]).key > (*node).key } {
            model.swap(at - 1, at);
            at -= 1;
        }
        Ok(())
    }

    #[test]
    fn random_sequences_match_the_model() -> Result {
        const NODES: usize = 200;

        let mut random = Random(0x1234_5678_9abc_def1);
        for range in [1, 5, 1000] {
            let mut memory = nodes(NODES)?;
            let base = memory.as_mut_ptr();
            let mut free = KVec::new();
            for i in 0..NODES {
                // SAFETY: `i` is in bounds.
                free.push(unsafe { base.add(i) }, GFP_KERNEL)?;
            }
            let (mut tree, mut model) = (Tree::new(), KVec::new());
            let (mut other, mut others) = (Tree::new(), KVec::new());
            for _ in 0..4000 {
                match random.below(16) {
                    0..=8 => {
                        let Some(node) = free.pop() else {
                            continue;
                        };
                        // SAFETY: The node is in no tree, and stays in place.
                        unsafe {
                            (*node).key = random.below(range) as u64;
                            tree.insert(node, random.priority());
                        }
                        model_insert(&mut model, node)?;
                    }
                    9..=11 if !model.is_empty() => {
                        let node = model
                            .remove(random.below(model.len()))
                            .map_err(|_| EINVAL)?;
                        // SAFETY: It is in that tree.
                        unsafe {
                            assert!(!other.contains(node));
                            tree.remove(node);
                        }
                        free.push(node, GFP_KERNEL)?;
                    }
                    12 if !others.is_empty() => {
                        let node = others
                            .remove(random.below(others.len()))
                            .map_err(|_| EINVAL)?;
                        // SAFETY: It is in that tree.
                        unsafe {
                            assert!(!tree.contains(node));
                            other.remove(node);
                        }
                        free.push(node, GFP_KERNEL)?;
                    }
                    13 => {
                        let key = random.below(range) as u64;
                        other.append(tree.cut(key));
                        // SAFETY: The nodes stay in place.
                        while !model.is_empty() && unsafe { (*model[0]).key } <= key {
                            let node = model.remove(0).map_err(|_| EINVAL)?;
                            others.push(node, GFP_KERNEL)?;
                        }
                    }
                    14 => {
                        let node = other.pop();
                        assert!(node == others.first().copied());
                        if let Some(node) = node {
                            others.remove(0).map_err(|_| EINVAL)?;
                            free.push(node, GFP_KERNEL)?;
                        }
                    }
                    _ => {
                        check(&tree, &model);
                        check(&other, &others);
                        let first = model.first().copied();
                        // SAFETY: The nodes stay in place.
                        assert_eq!(tree.first_key(), first.map(|node| unsafe { (*node).key }));
                    }
                }
            }
            check(&tree, &model);
            check(&other, &others);
        }
        Ok(())
    }

    #[test]
    fn rising_keys_are_balanced() -> Result {
        const NODES: usize = 4096;

        let mut random = Random(0xdead_beef_cafe_f00d);
        let mut memory = nodes(NODES)?;
        let base = memory.as_mut_ptr();
        let (mut tree, mut model) = (Tree::new(), KVec::new());
        for i in 0..NODES {
            // SAFETY: `i` is in bounds; the node is in no tree, and stays in place.
            unsafe {
                let node = base.add(i);
                (*node).key = i as u64;
                tree.insert(node, random.priority());
                model.push(node, GFP_KERNEL)?;
            }
        }
        // About 2 ln 4096 on average, and hardly three times as many.
        assert!(check(&tree, &model) < 50);
        let cut = tree.cut(NODES as u64 / 2);
        let (before, behind) = model.split_at(NODES / 2 + 1);
        assert!(check(&cut, before) < 50);
        assert!(check(&tree, behind) < 50);
        Ok(())
    }
}
