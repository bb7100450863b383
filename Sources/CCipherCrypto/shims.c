#include "CCipherCrypto.h"

#ifndef __APPLE__

// By default, libcrypto frees everything when the process exits, while threads of this library may still be encrypting.
// The system reclaims the memory anyway. Only the first call has an effect, so this one runs before main.
__attribute__((constructor)) static void keep_libcrypto_until_the_end(void) {
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, 0);
}

EVP_MAC_CTX *cs_hmac(const char *digest, const void *key, size_t count) {
    EVP_MAC *algorithm = EVP_MAC_fetch(0, "HMAC", 0);
    if (!algorithm) return 0;
    EVP_MAC_CTX *context = EVP_MAC_CTX_new(algorithm);
    EVP_MAC_free(algorithm);
    // libcrypto keeps the pointer to the parameter's name, which must outlive the call.
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string("digest", (char *)digest, 0),
        OSSL_PARAM_construct_end(),
    };
    if (context && EVP_MAC_init(context, key, count, parameters) != 1) {
        EVP_MAC_CTX_free(context);
        return 0;
    }
    return context;
}

#endif
