// SPDX-License-Identifier: GPL-2.0
/*
 * Every operation in every form.
 */
#include <linux/mm.h>
#include <linux/vmalloc.h>

#include "transfer.h"

static const char *const form_names[FORMS] = {
	[FORM_PLAIN] = "plain",
	[FORM_KVEC] = "v",
	[FORM_BVEC] = "bv",
	[FORM_SGL] = "sgl",
	[FORM_MSG_KVEC] = "msg of kvec",
	[FORM_MSG_BVEC] = "msg of bio_vec",
	[FORM_MSG_SGL] = "msg of scatterlist",
	[FORM_DATA] = "data",
	[FORM_INJECT] = "inject",
	[FORM_INJECT_DATA] = "injectdata",
};

const char *form_name(enum form form)
{
	return form_names[form];
}

bool form_exists(enum family family, enum form form)
{
	switch (form) {
	case FORM_DATA:
	case FORM_INJECT:
	case FORM_INJECT_DATA:
		return family == F_SEND || family == F_TSEND || family == F_WRITE;
	default:
		return true;
	}
}

static struct page *page_of(void *addr)
{
	return is_vmalloc_addr(addr) ? vmalloc_to_page(addr) : virt_to_page(addr);
}

/*
 * Cuts memory into pieces of all three kinds. Pieces of pages are as long as
 * the memory is contiguous and at most 3 pages and 5 bytes; others are as long
 * as needed to be few.
 */
static void cut(struct pieces *pieces, void *buf, size_t len)
{
	size_t most = max_t(size_t, 3 * PAGE_SIZE + 5, len / (VECTOR - 2));
	u8 *at = buf;

	sg_init_table(pieces->sgl, VECTOR);
	pieces->count = 0;
	while (len) {
		size_t offset = offset_in_page(at);
		size_t step = is_vmalloc_addr(at) ? PAGE_SIZE - offset : most;
		unsigned int i = pieces->count++;

		if (WARN_ON(i >= VECTOR))
			return;
		step = min(step, len);
		/* Some short ones first. */
		if (i < 3)
			step = min_t(size_t, step, i * 5 + 1);
		pieces->kvec[i] = (struct kvec) { .iov_base = at, .iov_len = step };
		bvec_set_page(&pieces->bvec[i], page_of(at), step, offset);
		sg_set_page(&pieces->sgl[i], page_of(at), step, offset);
		at += step;
		len -= step;
	}
}

static enum kfi_iov_type iov_type(enum form form)
{
	switch (form) {
	case FORM_MSG_BVEC:
		return KFI_BVEC;
	case FORM_MSG_SGL:
		return KFI_SGL;
	default:
		return KFI_KVEC;
	}
}

static const struct kvec *iov(const struct op *op, const struct pieces *pieces)
{
	switch (op->form) {
	case FORM_MSG_BVEC:
		return (const void *)pieces->bvec;
	case FORM_MSG_SGL:
		return (const void *)pieces->sgl;
	default:
		return pieces->kvec;
	}
}

static ssize_t post_message(struct kfid_ep *ep, const struct op *op,
			    const struct pieces *p)
{
	struct kfi_msg msg = {
		.type = iov_type(op->form),
		.msg_iov = iov(op, p),
		.iov_count = p->count,
		.addr = op->peer,
		.context = op->context,
		.data = op->data,
	};

	switch (op->form) {
	case FORM_PLAIN:
		return op->family == F_SEND ?
			kfi_send(ep, op->buf, op->len, NULL, op->peer, op->context) :
			kfi_recv(ep, op->buf, op->len, NULL, op->peer, op->context);
	case FORM_KVEC:
		return op->family == F_SEND ?
			kfi_sendv(ep, p->kvec, NULL, p->count, op->peer, op->context) :
			kfi_recvv(ep, p->kvec, NULL, p->count, op->peer, op->context);
	case FORM_BVEC:
		return op->family == F_SEND ?
			kfi_sendbv(ep, p->bvec, NULL, p->count, op->peer, op->context) :
			kfi_recvbv(ep, p->bvec, NULL, p->count, op->peer, op->context);
	case FORM_SGL:
		return op->family == F_SEND ?
			kfi_sendsgl(ep, p->sgl, NULL, p->count, op->peer, op->context) :
			kfi_recvsgl(ep, p->sgl, NULL, p->count, op->peer, op->context);
	case FORM_DATA:
		return kfi_senddata(ep, op->buf, op->len, NULL, op->data, op->peer,
				    op->context);
	case FORM_INJECT:
		return kfi_inject(ep, op->buf, op->len, op->peer);
	case FORM_INJECT_DATA:
		return kfi_injectdata(ep, op->buf, op->len, op->data, op->peer);
	default:
		return op->family == F_SEND ? kfi_sendmsg(ep, &msg, op->flags) :
					      kfi_recvmsg(ep, &msg, op->flags);
	}
}

static ssize_t post_tagged(struct kfid_ep *ep, const struct op *op,
			   const struct pieces *p)
{
	struct kfi_msg_tagged msg = {
		.type = iov_type(op->form),
		.msg_iov = iov(op, p),
		.iov_count = p->count,
		.addr = op->peer,
		.tag = op->tag,
		.ignore = op->ignore,
		.context = op->context,
		.data = op->data,
	};

	switch (op->form) {
	case FORM_PLAIN:
		return op->family == F_TSEND ?
			kfi_tsend(ep, op->buf, op->len, NULL, op->peer, op->tag,
				  op->context) :
			kfi_trecv(ep, op->buf, op->len, NULL, op->peer, op->tag,
				  op->ignore, op->context);
	case FORM_KVEC:
		return op->family == F_TSEND ?
			kfi_tsendv(ep, p->kvec, NULL, p->count, op->peer, op->tag,
				   op->context) :
			kfi_trecvv(ep, p->kvec, NULL, p->count, op->peer, op->tag,
				   op->ignore, op->context);
	case FORM_BVEC:
		return op->family == F_TSEND ?
			kfi_tsendbv(ep, p->bvec, NULL, p->count, op->peer, op->tag,
				    op->context) :
			kfi_trecvbv(ep, p->bvec, NULL, p->count, op->peer, op->tag,
				    op->ignore, op->context);
	case FORM_SGL:
		return op->family == F_TSEND ?
			kfi_tsendsgl(ep, p->sgl, NULL, p->count, op->peer, op->tag,
				     op->context) :
			kfi_trecvsgl(ep, p->sgl, NULL, p->count, op->peer, op->tag,
				     op->ignore, op->context);
	case FORM_DATA:
		return kfi_tsenddata(ep, op->buf, op->len, NULL, op->data, op->peer,
				     op->tag, op->context);
	case FORM_INJECT:
		return kfi_tinject(ep, op->buf, op->len, op->peer, op->tag);
	case FORM_INJECT_DATA:
		return kfi_tinjectdata(ep, op->buf, op->len, op->data, op->peer,
				       op->tag);
	default:
		return op->family == F_TSEND ? kfi_tsendmsg(ep, &msg, op->flags) :
					       kfi_trecvmsg(ep, &msg, op->flags);
	}
}

static ssize_t post_rma(struct kfid_ep *ep, const struct op *op,
			const struct pieces *p)
{
	struct kfi_rma_iov rma_iov = {
		.addr = op->addr,
		.len = op->len,
		.key = op->key,
	};
	struct kfi_msg_rma msg = {
		.type = iov_type(op->form),
		.msg_iov = iov(op, p),
		.iov_count = p->count,
		.addr = op->peer,
		.rma_iov = &rma_iov,
		.rma_iov_count = 1,
		.context = op->context,
		.data = op->data,
	};

	switch (op->form) {
	case FORM_PLAIN:
		return op->family == F_WRITE ?
			kfi_write(ep, op->buf, op->len, NULL, op->peer, op->addr,
				  op->key, op->context) :
			kfi_read(ep, op->buf, op->len, NULL, op->peer, op->addr,
				 op->key, op->context);
	case FORM_KVEC:
		return op->family == F_WRITE ?
			kfi_writev(ep, p->kvec, NULL, p->count, op->peer, op->addr,
				   op->key, op->context) :
			kfi_readv(ep, p->kvec, NULL, p->count, op->peer, op->addr,
				  op->key, op->context);
	case FORM_BVEC:
		return op->family == F_WRITE ?
			kfi_writebv(ep, p->bvec, NULL, p->count, op->peer, op->addr,
				    op->key, op->context) :
			kfi_readbv(ep, p->bvec, NULL, p->count, op->peer, op->addr,
				   op->key, op->context);
	case FORM_SGL:
		return op->family == F_WRITE ?
			kfi_writesgl(ep, p->sgl, NULL, p->count, op->peer, op->addr,
				     op->key, op->context) :
			kfi_readsgl(ep, p->sgl, NULL, p->count, op->peer, op->addr,
				    op->key, op->context);
	case FORM_DATA:
		return kfi_writedata(ep, op->buf, op->len, NULL, op->data, op->peer,
				     op->addr, op->key, op->context);
	case FORM_INJECT:
		return kfi_inject_write(ep, op->buf, op->len, op->peer, op->addr,
					op->key);
	case FORM_INJECT_DATA:
		return kfi_inject_writedata(ep, op->buf, op->len, op->data, op->peer,
					    op->addr, op->key);
	default:
		return op->family == F_WRITE ? kfi_writemsg(ep, &msg, op->flags) :
					       kfi_readmsg(ep, &msg, op->flags);
	}
}

/*
 * Posts an operation. Its description is overwritten afterwards: nobody may
 * need that any more.
 */
ssize_t op_post(struct kfid_ep *ep, const struct op *op)
{
	static struct pieces static_pieces;
	struct pieces *pieces = op->pieces ?: &static_pieces;
	ssize_t ret;

	if (op->form >= FORM_KVEC && op->form <= FORM_MSG_SGL)
		cut(pieces, op->buf, op->len);
	switch (op->family) {
	case F_SEND:
	case F_RECV:
		ret = post_message(ep, op, pieces);
		break;
	case F_TSEND:
	case F_TRECV:
		ret = post_tagged(ep, op, pieces);
		break;
	default:
		ret = post_rma(ep, op, pieces);
		break;
	}
	memset(pieces, 0xff, sizeof(*pieces));
	return ret;
}
