// SPDX-License-Identifier: GPL-2.0
/* The kernel's library for cryptography, and its keys, for rust/kfi/linux/hmac.rs and key.rs. */
#include <crypto/utils.h>
#include <keys/user-type.h>
#include <linux/err.h>
#include <linux/key.h>
#include <linux/string.h>

#include "helpers_secret.h"

/* CONFIG_NET selects CONFIG_BPF, which selects that. */
#ifndef CONFIG_CRYPTO_LIB_SHA256
#error "a kernel without CONFIG_CRYPTO_LIB_SHA256"
#endif

void kfi_rust_helper_hmac_sha256_init(struct hmac_sha256_ctx *ctx,
				      const struct hmac_sha256_key *key)
{
	hmac_sha256_init(ctx, key);
}

void kfi_rust_helper_hmac_sha256_update(struct hmac_sha256_ctx *ctx, const u8 *data, size_t len)
{
	hmac_sha256_update(ctx, data, len);
}

void kfi_rust_helper_zeroize(void *memory, size_t len)
{
	memzero_explicit(memory, len);
}

/* Takes the same time wherever they do. */
bool kfi_rust_helper_differs(const void *one, const void *other, size_t len)
{
#if IS_ENABLED(CONFIG_CRYPTO_LIB_UTILS)
	return crypto_memneq(one, other, len);
#else
	/* A kernel may lack that one; nothing else can be asked for it from outside of the tree. */
	const u8 *a = one, *b = other;
	unsigned int found = 0;

	while (len--) {
		found |= *a++ ^ *b++;
		OPTIMIZER_HIDE_VAR(found);
	}
	return found;
#endif
}

#ifdef CONFIG_KEYS
/* Looks among the keys that there are: nothing in user space is asked to make one. */
int kfi_rust_helper_key_request(bool logon, const char *description, struct requested_key **key)
{
	struct key *found = request_key(logon ? &key_type_logon : &key_type_user, description,
					NULL);

	if (IS_ERR(found))
		return PTR_ERR(found);
	*key = (struct requested_key *)found;
	return 0;
}

void kfi_rust_helper_key_give_back(struct requested_key *key)
{
	key_put((struct key *)key);
}

int kfi_rust_helper_key_lock(struct requested_key *key, const u8 **payload, size_t *len)
{
	struct key *real = (struct key *)key;
	const struct user_key_payload *user;
	int ret;

	down_read(&real->sem);
	ret = key_validate(real);
	user = ret ? NULL : user_key_payload_locked(real);
	if (!user) {
		up_read(&real->sem);
		return ret ?: -EKEYREVOKED;
	}
	*payload = user->data;
	*len = user->datalen;
	return 0;
}

void kfi_rust_helper_key_unlock(struct requested_key *key)
{
	up_read(&((struct key *)key)->sem);
}
#else
int kfi_rust_helper_key_request(bool logon, const char *description, struct requested_key **key)
{
	return -EOPNOTSUPP;
}

void kfi_rust_helper_key_give_back(struct requested_key *key)
{
}

int kfi_rust_helper_key_lock(struct requested_key *key, const u8 **payload, size_t *len)
{
	return -EOPNOTSUPP;
}

void kfi_rust_helper_key_unlock(struct requested_key *key)
{
}
#endif /* CONFIG_KEYS */
