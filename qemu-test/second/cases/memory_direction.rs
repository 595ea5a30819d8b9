// SPDX-License-Identifier: GPL-2.0

//! Memory of a send is only read, and does not become memory of a receive.

use crate::kfi::{
    memory::{
        transfer,
        Local,
        Memory,
        Source,
        SourceBuffers,
        Target, //
    },
    provider::AtomicForm, //
};

fn copy(source: &Memory<Source>, target: &Memory<Target>) -> usize {
    #[cfg(wrong)]
    {
        source.cursor(0).write(&[1]); //~ E0599
        transfer(&mut source.cursor(0), &mut target.cursor(0), 1); //~ E0308
        let _: &Memory<Target> = source; //~ E0308
    }
    target.cursor(0).write(&[1]);
    transfer(&mut target.cursor(0), &mut source.cursor(0), 1)
}

fn receive(source: SourceBuffers<'_>) {
    #[cfg(wrong)]
    {
        let _ = Local::Target(source); //~ E0308
        let _ = AtomicForm::Fetch { result: source }; //~ E0308
    }
    let _ = Local::Source(source);
}
