// The declarations of CommonCrypto that CipherPrimitives uses, for Scripts/commoncrypto, which tests it on machines
// without CommonCrypto. CommonCrypto.c implements them; none of Apple's code is used.
// Source: CommonCryptor.h, CommonDigest.h, CommonHMAC.h, CommonKeyDerivation.h, CommonRandom.h of Apple's SDKs.
#ifndef COMMON_CRYPTO_STUB_H
#define COMMON_CRYPTO_STUB_H

#include <stddef.h>
#include <stdint.h>

enum { kCCSuccess = 0 };
typedef int32_t CCCryptorStatus;
typedef CCCryptorStatus CCRNGStatus;

CCRNGStatus CCRandomGenerateBytes(void *bytes, size_t count);

enum { kCCEncrypt = 0, kCCDecrypt };
typedef uint32_t CCOperation;
enum { kCCAlgorithmAES = 0 };
typedef uint32_t CCAlgorithm;
typedef uint32_t CCOptions;
enum { kCCKeySizeAES256 = 32 };
enum { kCCBlockSizeAES128 = 16 };
typedef struct _CCCryptor *CCCryptorRef;

CCCryptorStatus CCCryptorCreate(CCOperation op, CCAlgorithm alg, CCOptions options, const void *key, size_t keyLength,
    const void *iv, CCCryptorRef *cryptorRef);
CCCryptorStatus CCCryptorReset(CCCryptorRef cryptorRef, const void *iv);
CCCryptorStatus CCCryptorUpdate(CCCryptorRef cryptorRef, const void *dataIn, size_t dataInLength, void *dataOut,
    size_t dataOutAvailable, size_t *dataOutMoved);
CCCryptorStatus CCCryptorRelease(CCCryptorRef cryptorRef);

enum { kCCHmacAlgSHA1, kCCHmacAlgMD5, kCCHmacAlgSHA256, kCCHmacAlgSHA384, kCCHmacAlgSHA512, kCCHmacAlgSHA224 };
typedef uint32_t CCHmacAlgorithm;
typedef struct {
    uint32_t ctx[96];
} CCHmacContext;

void CCHmacInit(CCHmacContext *ctx, CCHmacAlgorithm algorithm, const void *key, size_t keyLength);
void CCHmacUpdate(CCHmacContext *ctx, const void *data, size_t dataLength);
void CCHmacFinal(CCHmacContext *ctx, void *macOut);

enum { kCCPBKDF2 = 2 };
typedef uint32_t CCPBKDFAlgorithm;
enum {
    kCCPRFHmacAlgSHA1 = 1,
    kCCPRFHmacAlgSHA224,
    kCCPRFHmacAlgSHA256,
    kCCPRFHmacAlgSHA384,
    kCCPRFHmacAlgSHA512
};
typedef uint32_t CCPseudoRandomAlgorithm;

int CCKeyDerivationPBKDF(CCPBKDFAlgorithm algorithm, const char *password, size_t passwordLen, const uint8_t *salt,
    size_t saltLen, CCPseudoRandomAlgorithm prf, unsigned rounds, uint8_t *derivedKey, size_t derivedKeyLen);

typedef uint32_t CC_LONG;
unsigned char *CC_SHA256(const void *data, CC_LONG len, unsigned char *md);

#endif
