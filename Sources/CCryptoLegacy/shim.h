#pragma once
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/provider.h>
#include <openssl/rsa.h>
#include <openssl/sha.h>

// The one function of <openssl/x509.h> in use.  With all of that header, this module would become the owner of structures that
// other modules over libcrypto have, too.
EVP_PKEY *d2i_PUBKEY(EVP_PKEY **key, const unsigned char **bytes, long length);
