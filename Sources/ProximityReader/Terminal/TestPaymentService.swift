/// The payment service of tests and development: anybody can sign as it.
///
/// Its private key is published, with the tool psp-sandbox.  A terminal that takes money has other keys.
package enum TestPaymentService {
    /// Its public key, as a JSON Web Key Set.
    package static let keySet = """
        {"keys":[{"kty":"EC","crv":"P-256","use":"sig","alg":"ES256","kid":"test-payment-service",\
        "x":"A7bzZSKUJQVoRrbhhBeotBS9K9D8EecwZ6pYLsTrD_k","y":"aE9mO7DM_syqfuBYF61tL8VPRBgKoSqG3AciFM2laRs"}]}
        """

    /// Its key's (RFC 7638): SHA-256 of the canonical form, as `openssl dgst` has it.
    static let thumbprint = "ZgoZU4V9QuLqLSYfG7Ge1od9GDyvpLIk0ewjtYR_pFI"
}
