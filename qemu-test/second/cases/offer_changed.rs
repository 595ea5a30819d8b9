// SPDX-License-Identifier: GPL-2.0

//! What a provider demands of its consumer stands in its offer: nobody takes it out there, or opens a
//! domain with anything else. Hints are the consumer's.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::kfi::{
    consumer::{
        Contexts,
        Domain,
        Fabric,
        Hints,
        Offers, //
    },
    context::Context,
    info::Info, //
};

fn hints(offers: &Offers) -> Result<Hints<'static>> {
    let mut info = offers.first().to_info()?;
    info.first_mut().mode(0).domain_attr()?.mode(0).mr_mode(0);
    info.first_mut().tx_attr()?.mode = 0;
    Ok(Hints::new(info))
}

fn open(
    fabric: &Fabric,
    offers: &mut Offers,
    made: &Info,
    contexts: &Arc<Contexts>,
) -> Result<Domain> {
    #[cfg(wrong)]
    {
        offers.first_mut().mode(0); //~ E0599
        Domain::open(fabric, made.first(), Context::NONE, contexts)?; //~ E0308
    }
    Domain::open(fabric, offers.first(), Context::NONE, contexts)
}

#[cfg(wrong)]
fn unwrap(offers: Offers) -> Info {
    offers.0 //~ E0616
}
