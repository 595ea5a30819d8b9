/* SPDX-License-Identifier: GPL-2.0 */
/* Prototypes of helpers_secret.inc.c, for modules that have the parts linux_hmac and linux_key of rust/kfi. */
#ifndef _KFI_RUST_HELPERS_SECRET_H
#define _KFI_RUST_HELPERS_SECRET_H

#include <crypto/sha2.h>

/* A struct key, which Rust does not see; a kernel may have none. */
struct requested_key;

void kfi_rust_helper_hmac_sha256_init(struct hmac_sha256_ctx *ctx,
				      const struct hmac_sha256_key *key);
void kfi_rust_helper_hmac_sha256_update(struct hmac_sha256_ctx *ctx, const u8 *data, size_t len);
void kfi_rust_helper_zeroize(void *memory, size_t len);
bool kfi_rust_helper_differs(const void *one, const void *other, size_t len);

int kfi_rust_helper_key_request(bool logon, const char *description, struct requested_key **key);
void kfi_rust_helper_key_give_back(struct requested_key *key);
int kfi_rust_helper_key_lock(struct requested_key *key, const u8 **payload, size_t *len);
void kfi_rust_helper_key_unlock(struct requested_key *key);

#endif /* _KFI_RUST_HELPERS_SECRET_H */
