/// The cards that come with the library, each a card file in the folder `Cards`.
public enum VirtualCards {
    /// A card that comes with the library.
    public struct BuiltIn: Sendable {
        /// `visa`, `mifare-classic-1k`
        public let name: String
        /// The text of its card file, to be read as an example or changed into another card.
        public let text: String

        /// A one-line description of the card.
        public var summary: String {
            (try? CardFileSyntax.parse(Array(text.utf8)))?.arguments.dropFirst().first?.text ?? name
        }
    }

    /// All of them, in the order in which a list shows them.
    public static var all: [BuiltIn] {
        table.map { BuiltIn(name: $0.0, text: String(decoding: $0.1, as: UTF8.self)) }
    }

    /// Returns a new card by name.
    ///
    /// - Returns: nil if no card has that name.
    public static func named(_ name: String) -> (any VirtualCard)? {
        guard let entry = table.first(where: { $0.0 == name }) else { return nil }
        return try? CardFile(parsing: entry.1).makeCard()
    }

    private static var table: [(String, [UInt8])] {
        [
            ("visa", PackageResources.visa_card),
            ("mastercard", PackageResources.mastercard_card),
            ("two-applications", PackageResources.two_applications_card),
            ("multi", PackageResources.multi_card),
            ("blocked", PackageResources.blocked_card),
            ("phone", PackageResources.phone_card),
            ("phone-apple", PackageResources.phone_apple_card),
            ("phone-google", PackageResources.phone_google_card),
            ("visa-decline", PackageResources.visa_decline_card),
            ("visa-update", PackageResources.visa_update_card),
            ("visa-offline", PackageResources.visa_offline_card),
            ("visa-oda-online", PackageResources.visa_oda_online_card),
            ("visa-sda-online", PackageResources.visa_sda_online_card),
            ("visa-online-pin", PackageResources.visa_online_pin_card),
            ("visa-signature", PackageResources.visa_signature_card),
            ("visa-cdcvm", PackageResources.visa_cdcvm_card),
            ("visa-oda-fails", PackageResources.visa_oda_fails_card),
            ("visa-oda-fails-online", PackageResources.visa_oda_fails_online_card),
            ("visa-oda-fails-switch", PackageResources.visa_oda_fails_switch_card),
            ("visa-expired", PackageResources.visa_expired_card),
            ("visa-expired-online", PackageResources.visa_expired_online_card),
            ("visa-switch-cash", PackageResources.visa_switch_cash_card),
            ("visa-switch-cashback", PackageResources.visa_switch_cashback_card),
            ("visa-odd-keys", PackageResources.visa_odd_keys_card),
            ("visa-odd-records", PackageResources.visa_odd_records_card),
            ("visa-msd", PackageResources.visa_msd_card),
            ("visa-without-ttq", PackageResources.visa_without_ttq_card),
            ("emv-sda", PackageResources.emv_sda_card),
            ("emv-dda", PackageResources.emv_dda_card),
            ("emv-cda", PackageResources.emv_cda_card),
            ("mastercard-online", PackageResources.mastercard_online_card),
            ("mastercard-decline", PackageResources.mastercard_decline_card),
            ("mastercard-cda-fails", PackageResources.mastercard_cda_fails_card),
            ("mastercard-odd-keys", PackageResources.mastercard_odd_keys_card),
            ("mastercard-padded-keys", PackageResources.mastercard_padded_keys_card),
            ("mastercard-advance", PackageResources.mastercard_advance_card),
            ("mastercard-rrp-slow", PackageResources.mastercard_rrp_slow_card),
            ("mastercard-rrp-early", PackageResources.mastercard_rrp_early_card),
            ("mastercard-rrp-mismatch", PackageResources.mastercard_rrp_mismatch_card),
            ("mastercard-rrp-wrong", PackageResources.mastercard_rrp_wrong_card),
            ("mastercard-torn", PackageResources.mastercard_torn_card),
            ("mastercard-torn-lost", PackageResources.mastercard_torn_lost_card),
            ("mastercard-balance", PackageResources.mastercard_balance_card),
            ("mastercard-stripe", PackageResources.mastercard_stripe_card),
            ("mastercard-stripe-wide", PackageResources.mastercard_stripe_wide_card),
            ("mastercard-stripe-phone", PackageResources.mastercard_stripe_phone_card),
            ("mastercard-storage", PackageResources.mastercard_storage_card),
            ("mastercard-storage-rrp", PackageResources.mastercard_storage_rrp_card),
            ("mastercard-phone", PackageResources.mastercard_phone_card),
            ("mastercard-phone-ready", PackageResources.mastercard_phone_ready_card),
            ("maestro", PackageResources.maestro_card),
            ("mifare-classic-1k", PackageResources.mifare_classic_1k_card),
            ("ntag213", PackageResources.ntag213_card),
            ("ndef-type4", PackageResources.ndef_type4_card),
            ("felica", PackageResources.felica_card),
            ("iso-dep", PackageResources.iso_dep_card),
            ("type-b", PackageResources.type_b_card),
            ("passport", PackageResources.passport_card),
            ("passport-im", PackageResources.passport_im_card),
            ("passport-cam", PackageResources.passport_cam_card),
            ("passport-bac", PackageResources.passport_bac_card),
            ("passport-active", PackageResources.passport_active_card),
            ("identity-card", PackageResources.identity_card_card),
            ("passport-cloned", PackageResources.passport_cloned_card),
            ("passport-altered", PackageResources.passport_altered_card),
            ("passport-expired-signer", PackageResources.passport_expired_signer_card),
        ]
    }
}
