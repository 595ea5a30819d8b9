// SPDX-License-Identifier: GPL-2.0

//! The calls of fabrics and domains that open objects, in a line each.

/// Defines calls of [`FabricOps`] and [`DomainOps`] that open objects, by their names in these traits.
///
/// With `=` stands a function that returns, for a hold on the fabric or domain and the attributes that
/// the call brings, what the object is made of:
///
/// ```ignore
/// fn new(domain: Hold<Domain>, attr: CounterAttr<'_>) -> Result<impl PinInit<Self>>
/// ```
///
/// With `=>` stands one that has the arguments and the result of the call itself, for an object that
/// others have to learn of.
///
/// [`FabricOps`]: super::FabricOps
/// [`DomainOps`]: super::DomainOps
///
/// # Examples
///
/// ```ignore
/// impl DomainOps for Domain {
///     type Counter = Counter;
///     type Endpoint = Endpoint;
///     // ...
///
///     open_calls! {
///         cntr_open = Counter::new;
///         endpoint => Endpoint::open;
///     }
/// }
/// ```
#[allow(unused_macros, reason = "a provider may define its calls by itself")]
macro_rules! open_calls {
    ($($call:ident $how:tt $new:path;)*) => {
        $($crate::kfi::provider::open_calls!(@ $call $how $new);)*
    };

    (@ domain $how:tt $new:path) => {
        $crate::kfi::provider::open_calls!(@@ $how $new, domain, Domain: DomainClass, $crate::kfi::info::InfoRef<'_>);
    };
    (@ eq_open $how:tt $new:path) => {
        $crate::kfi::provider::open_calls!(@@ $how $new, eq_open, EventQueue: EventQueueClass,
            $crate::kfi::provider::EventQueueAttr<'_>);
    };
    (@ wait_open $how:tt $new:path) => {
        $crate::kfi::provider::open_calls!(@@ $how $new, wait_open, WaitSet: WaitSetClass,
            $crate::kfi::provider::WaitSetAttr);
    };
    (@ av_open $how:tt $new:path) => {
        $crate::kfi::provider::open_calls!(@@ $how $new, av_open, AddressVector: AddressVectorClass,
            $crate::kfi::provider::AddressVectorAttr);
    };
    (@ cntr_open $how:tt $new:path) => {
        $crate::kfi::provider::open_calls!(@@ $how $new, cntr_open, Counter: CounterClass,
            $crate::kfi::provider::CounterAttr<'_>);
    };
    (@ cq_open $how:tt $new:path) => {
        $crate::kfi::provider::open_calls!(@@ $how $new, cq_open, CompletionQueue: CompletionQueueClass,
            $crate::kfi::provider::CompletionQueueAttr<'_>);
    };
    (@ poll_open $how:tt $new:path) => {
        $crate::kfi::provider::open_calls!(@@ $how $new, poll_open, PollSet: PollSetClass, u64);
    };
    (@ endpoint $how:tt $new:path) => {
        $crate::kfi::provider::open_calls!(@@ $how $new, endpoint, Endpoint: PlainClass,
            $crate::kfi::info::InfoRef<'_>);
    };
    (@ scalable_ep $how:tt $new:path) => {
        $crate::kfi::provider::open_calls!(@@ $how $new, scalable_ep, ScalableEndpoint: ScalableClass,
            $crate::kfi::info::InfoRef<'_>);
    };
    (@ stx_ctx $how:tt $new:path) => {
        $crate::kfi::provider::open_calls!(@@ $how $new, stx_ctx, SharedTransmitContext: SharedTransmitClass,
            Option<&$crate::kfi::provider::kfi_tx_attr>);
    };
    (@ srx_ctx $how:tt $new:path) => {
        $crate::kfi::provider::open_calls!(@@ $how $new, srx_ctx, SharedReceiveContext: SharedReceiveClass,
            Option<&$crate::kfi::provider::kfi_rx_attr>);
    };
    (@ mr_reg $how:tt $new:path) => {
        $crate::kfi::provider::open_calls!(@@ $how $new, mr_reg, MemoryRegion: MemoryRegionClass,
            $crate::kfi::provider::MemoryRegionAttr<'_>);
    };

    (@@ = $new:path, $call:ident, $object:ident: $class:ident, $attr:ty) => {
        fn $call<'o>(
            this: &$crate::kfi::fid::Fid<Self>,
            attr: $attr,
            opening: $crate::kfi::fid::Opening<'o, $crate::kfi::provider::$class>,
        ) -> ::kernel::error::Result<$crate::kfi::fid::NewFid<'o, Self::$object>> {
            let parent = $crate::kfi::hold::Hold::new(this)?;
            $crate::kfi::fid::NewFid::new($new(parent, attr)?, opening)
        }
    };
    (@@ => $new:path, $call:ident, $object:ident: $class:ident, $attr:ty) => {
        fn $call<'o>(
            this: &$crate::kfi::fid::Fid<Self>,
            attr: $attr,
            opening: $crate::kfi::fid::Opening<'o, $crate::kfi::provider::$class>,
        ) -> ::kernel::error::Result<$crate::kfi::fid::NewFid<'o, Self::$object>> {
            $new(this, attr, opening)
        }
    };
}
pub(crate) use open_calls;
