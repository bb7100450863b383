#ifndef CCIPHER_CRYPTO_H
#define CCIPHER_CRYPTO_H

#include "CCipherLanes.h"

// Apple platforms use CommonCrypto instead of libcrypto.
#ifndef __APPLE__

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

// Creates a context for HMACs with the digest that libcrypto knows by this name; null on failure. EVP_MAC_CTX_free
// frees it.
EVP_MAC_CTX *cs_hmac(const char *digest, const void *key, size_t count);

#endif
#endif
