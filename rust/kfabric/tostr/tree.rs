// SPDX-License-Identifier: GPL-2.0

//! Structures as indented lines.

#![forbid(unsafe_code)]

use kernel::{
    fmt,
    prelude::*,
    str::CStr, //
};

use super::{
    addr::Address,
    names::*, //
};
use crate::kfi::{
    bindings,
    info::InfoRef, //
};

/// Attributes of a domain, with what they refer to.
#[derive(Clone, Copy)]
pub(crate) struct DomainAttr<'a> {
    /// The attributes.
    pub(crate) attr: &'a bindings::kfi_domain_attr,
    /// The name in them.
    pub(crate) name: Option<&'a CStr>,
}

/// Attributes of a fabric, with what they refer to.
#[derive(Clone, Copy)]
pub(crate) struct FabricAttr<'a> {
    /// The attributes.
    pub(crate) attr: &'a bindings::kfi_fabric_attr,
    /// The name in them.
    pub(crate) name: Option<&'a CStr>,
    /// The name of the provider in them.
    pub(crate) prov_name: Option<&'a CStr>,
}

/// A text, if there is one.
struct Text<'a>(Option<&'a CStr>);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(text) => text.fmt(f),
            None => f.write_str("(null)"),
        }
    }
}

/// A reference to an object, in the form that the kernel has for pointers.
struct Object<T>(*mut T);

impl<T> fmt::Display for Object<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_null() {
            f.write_str("(null)")
        } else {
            f.write_fmt(fmt!("{:p}", self.0))
        }
    }
}

/// A number of contexts, or that they are shared.
struct Contexts(usize);

impl fmt::Display for Contexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == bindings::KFI_SHARED_CONTEXT as usize {
            f.write_str("KFI_SHARED_CONTEXT")
        } else {
            self.0.fmt(f)
        }
    }
}

/// A traffic class: a label or a DSCP.
pub(super) struct TrafficClass(pub(super) u32);

impl fmt::Display for TrafficClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.checked_sub(bindings::KFI_TC_DSCP) {
            Some(dscp) if dscp <= 0xff => write!(f, "KFI_TC_DSCP ({dscp})"),
            _ => TRAFFIC_CLASS.show(self.0).fmt(f),
        }
    }
}

/// A version as the macros of the public headers make it.
pub(super) struct Version(pub(super) u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 >> 16, self.0 & 0xffff)
    }
}

/// Something that is shown as one line per member.
pub(super) trait Structure {
    /// The name of its type.
    const NAME: &'static str;

    /// Writes its members.
    fn members(&self, tree: &mut Tree<'_, '_>);
}

/// Writes a structure.
pub(super) fn show<T: Structure>(f: &mut fmt::Formatter<'_>, data: &T) -> fmt::Result {
    let mut tree = Tree {
        out: f,
        level: 0,
        result: Ok(()),
    };
    tree.node(Some(data));
    tree.result
}

/// Writes lines. After an error it writes no more.
pub(super) struct Tree<'a, 'f> {
    out: &'a mut fmt::Formatter<'f>,
    level: usize,
    result: fmt::Result,
}

impl Tree<'_, '_> {
    /// Writes something, unless there was an error.
    fn write(&mut self, args: fmt::Arguments<'_>) {
        if self.result.is_ok() {
            self.result = self.out.write_fmt(args);
        }
    }

    /// Writes the start of a line.
    fn start(&mut self, name: &str) {
        for _ in 0..self.level {
            self.write(fmt!("    "));
        }
        self.write(fmt!("{name}:"));
    }

    /// Writes a member.
    fn line(&mut self, name: &str, value: impl fmt::Display) -> &mut Self {
        self.start(name);
        self.write(fmt!(" {value}\n"));
        self
    }

    /// Writes a structure, if it is there.
    fn node<T: Structure>(&mut self, data: Option<&T>) -> &mut Self {
        let Some(data) = data else {
            return self.line(T::NAME, "(null)");
        };
        self.start(T::NAME);
        self.write(fmt!("\n"));
        self.level += 1;
        data.members(self);
        self.level -= 1;
        self
    }
}

impl Structure for InfoRef<'_> {
    const NAME: &'static str = "kfi_info";

    fn members(&self, tree: &mut Tree<'_, '_>) {
        let info = self.get();
        let domain = self.domain_attr().map(|attr| DomainAttr {
            attr,
            name: self.domain_name(),
        });
        let fabric = self.fabric_attr().map(|attr| FabricAttr {
            attr,
            name: self.fabric_name(),
            prov_name: self.prov_name(),
        });
        let addr = |bytes| Address::new(info.addr_format, bytes);
        tree.line("caps", CAPS.show(info.caps))
            .line("mode", MODE.show(info.mode))
            .line("addr_format", ADDR_FORMAT.show(info.addr_format))
            .line("src_addrlen", info.src_addrlen)
            .line("dest_addrlen", info.dest_addrlen)
            .line("src_addr", addr(self.src_addr()))
            .line("dest_addr", addr(self.dest_addr()))
            .line("handle", Object(info.handle))
            .node(self.tx_attr())
            .node(self.rx_attr())
            .node(self.ep_attr())
            .node(domain.as_ref())
            .node(fabric.as_ref());
    }
}

impl Structure for bindings::kfi_tx_attr {
    const NAME: &'static str = "kfi_tx_attr";

    fn members(&self, tree: &mut Tree<'_, '_>) {
        tree.line("caps", CAPS.show(self.caps))
            .line("mode", MODE.show(self.mode))
            .line("op_flags", OP_FLAGS.show(self.op_flags))
            .line("msg_order", MSG_ORDER.show(self.msg_order))
            .line("comp_order", MSG_ORDER.show(self.comp_order))
            .line("inject_size", self.inject_size)
            .line("size", self.size)
            .line("iov_limit", self.iov_limit)
            .line("rma_iov_limit", self.rma_iov_limit)
            .line("tclass", TrafficClass(self.tclass));
    }
}

impl Structure for bindings::kfi_rx_attr {
    const NAME: &'static str = "kfi_rx_attr";

    fn members(&self, tree: &mut Tree<'_, '_>) {
        tree.line("caps", CAPS.show(self.caps))
            .line("mode", MODE.show(self.mode))
            .line("op_flags", OP_FLAGS.show(self.op_flags))
            .line("msg_order", MSG_ORDER.show(self.msg_order))
            .line("comp_order", MSG_ORDER.show(self.comp_order))
            .line("total_buffered_recv", self.total_buffered_recv)
            .line("size", self.size)
            .line("iov_limit", self.iov_limit);
    }
}

impl Structure for bindings::kfi_ep_attr {
    const NAME: &'static str = "kfi_ep_attr";

    fn members(&self, tree: &mut Tree<'_, '_>) {
        tree.line("type", EP_TYPE.show(self.type_))
            .line("protocol", PROTOCOL.show(self.protocol))
            .line("protocol_version", self.protocol_version)
            .line("max_msg_size", self.max_msg_size)
            .line("msg_prefix_size", self.msg_prefix_size)
            .line("max_order_raw_size", self.max_order_raw_size)
            .line("max_order_war_size", self.max_order_war_size)
            .line("max_order_waw_size", self.max_order_waw_size)
            .line("mem_tag_format", fmt!("{:#018x}", self.mem_tag_format))
            .line("tx_ctx_cnt", Contexts(self.tx_ctx_cnt))
            .line("rx_ctx_cnt", Contexts(self.rx_ctx_cnt))
            // The key itself is a secret.
            .line("auth_key_size", self.auth_key_size);
    }
}

impl Structure for DomainAttr<'_> {
    const NAME: &'static str = "kfi_domain_attr";

    fn members(&self, tree: &mut Tree<'_, '_>) {
        let attr = self.attr;
        tree.line("domain", Object(attr.domain))
            .line("name", Text(self.name))
            .line("threading", THREADING.show(attr.threading))
            .line("control_progress", PROGRESS.show(attr.control_progress))
            .line("data_progress", PROGRESS.show(attr.data_progress))
            .line("resource_mgmt", RESOURCE_MGMT.show(attr.resource_mgmt))
            .line("av_type", AV_TYPE.show(attr.av_type))
            .line("mr_mode", MrMode(attr.mr_mode))
            .line("mr_key_size", attr.mr_key_size)
            .line("cq_data_size", attr.cq_data_size)
            .line("cq_cnt", attr.cq_cnt)
            .line("ep_cnt", attr.ep_cnt)
            .line("tx_ctx_cnt", attr.tx_ctx_cnt)
            .line("rx_ctx_cnt", attr.rx_ctx_cnt)
            .line("max_ep_tx_ctx", attr.max_ep_tx_ctx)
            .line("max_ep_rx_ctx", attr.max_ep_rx_ctx)
            .line("max_ep_stx_ctx", attr.max_ep_stx_ctx)
            .line("max_ep_srx_ctx", attr.max_ep_srx_ctx)
            .line("cntr_cnt", attr.cntr_cnt)
            .line("mr_iov_limit", attr.mr_iov_limit)
            .line("caps", CAPS.show(attr.caps))
            .line("mode", MODE.show(attr.mode))
            // The key itself is a secret.
            .line("auth_key_size", attr.auth_key_size)
            .line("max_err_data", attr.max_err_data)
            .line("mr_cnt", attr.mr_cnt)
            .line("tclass", TrafficClass(attr.tclass));
    }
}

impl Structure for FabricAttr<'_> {
    const NAME: &'static str = "kfi_fabric_attr";

    fn members(&self, tree: &mut Tree<'_, '_>) {
        let attr = self.attr;
        tree.line("fabric", Object(attr.fabric))
            .line("name", Text(self.name))
            .line("prov_name", Text(self.prov_name))
            .line("prov_version", Version(attr.prov_version))
            .line("api_version", Version(attr.api_version));
    }
}
