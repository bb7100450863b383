#ifndef CCIPHER_CRYPTO_H
#define CCIPHER_CRYPTO_H

#include "CCipherLanes.h"

// Apple platforms have CommonCrypto, and nothing of this.
#ifndef __APPLE__

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

// A context for HMACs with a digest that libcrypto knows by this name; null where it refuses. EVP_MAC_CTX_free ends it.
EVP_MAC_CTX *cs_hmac(const char *digest, const void *key, size_t count);

#endif
#endif
