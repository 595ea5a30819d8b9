// SPDX-License-Identifier: GPL-2.0

//! The state of a task is changed by what makes sure that the task is woken.

#[cfg(wrong)]
use crate::kfi::linux::sleep::schedule_until; //~ E0603
#[cfg(wrong)]
use crate::kfi::linux::sleep::set_current_state; //~ E0603
use crate::kfi::linux::{
    timeout::Timeout,
    wait_queue::WaitQueue, //
};

fn sleep(queue: &WaitQueue) {
    queue.wait_until(Timeout::Millis(10).deadline(), || false);
}
