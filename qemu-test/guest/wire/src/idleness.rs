// SPDX-License-Identifier: GPL-2.0

//! Since when nothing of an association is under way.

use crate::idle::Idle;

#[test]
fn only_the_first_connection_renews_it() {
    let mut idle = Idle::new(10);
    assert_eq!(idle.quiet_since(), Some(10));
    idle.note_connection(|| 20);
    idle.note(Some(1), || 25);
    idle.note_connection(|| 30);
    assert_eq!((idle.since(), idle.quiet_since()), (Some(10), Some(20)));
    // One has come, and is over.
    idle.note(None, || 40);
    assert_eq!((idle.since(), idle.quiet_since()), (None, None));
    idle.note_connection(|| 50);
    idle.note(Some(2), || 60);
    assert_eq!((idle.since(), idle.quiet_since()), (Some(60), Some(60)));
    idle.note_connection(|| 70);
    idle.note_connection(|| 80);
    assert_eq!((idle.since(), idle.quiet_since()), (Some(60), Some(70)));
    // More have come and are over since anybody looked.
    idle.note(Some(5), || 90);
    assert_eq!((idle.since(), idle.quiet_since()), (Some(90), Some(90)));
}
