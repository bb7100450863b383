#ifndef CCIPHER_LANES_H
#define CCIPHER_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// AES-256-CBC and HMAC-SHA512 of several messages in parallel, with libipsec-mb on x86-64 with AVX2 or better. The
// library is loaded if it is installed; a build without its header (libipsec-mb-dev) never loads it.
typedef struct cs_lanes cs_lanes;

typedef struct cs_message {
    const uint8_t *input;
    size_t count;
    // For encryption: 16 bytes.
    const uint8_t *vector;
    // As many bytes as the input, or the 64 bytes of an HMAC, which may overlap the end of the input.
    uint8_t *output;
} cs_message;

// Returns null if the library is missing, has a different version than its header, or fails. For one thread at a time.
// Each key has 32 bytes.
cs_lanes *cs_lanes_open(const uint8_t *encryption_key, const uint8_t *authentication_key);
// Erases the keys.
void cs_lanes_close(cs_lanes *lanes);

// Return false if the library fails for a message; the outputs are undefined then.
bool cs_lanes_encrypt(cs_lanes *lanes, const cs_message *messages, size_t count);
bool cs_lanes_authenticate(cs_lanes *lanes, const cs_message *messages, size_t count);

#endif
