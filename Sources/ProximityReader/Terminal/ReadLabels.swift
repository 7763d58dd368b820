import ContactlessMetrics

extension ReadRequest {
    /// The label of the metrics for what is requested.
    var label: MetricTable.Request {
        guard passes != nil else { return .payment }
        return card == nil ? .pass : .paymentAndPass
    }
}

extension MetricTable.ReadResult {
    init(_ result: Result<TapResult, any Error>) {
        self =
            switch result {
            case .success(let tap):
                switch tap.payment?.outcome {
                case .success, nil: .completed
                case .cardDeclined: .declined
                case .failure: .failed
                }
            case .failure(let error as PaymentCardReaderSession.ReadError): Self(error)
            case .failure(is CancellationError): .cancelled
            case .failure(is AnotherInterfaceNeeded): .failed
            case .failure: .refused
            }
    }

    private init(_ error: PaymentCardReaderSession.ReadError) {
        self =
            switch error {
            case .readCancelled, .readFromBackgroundError: .cancelled
            case .paymentCardDeclined: .declined
            case .cardReadFailed, .cardNotSupported, .paymentReadFailed, .pinNotAllowed, .vasReadFail: .failed
            case .nfcDisabled, .readerInitializationFailed, .readerNotAvailable, .readerServiceConnectionError,
                .readerServiceError:
                .readerFailed
            default: .refused
            }
    }
}
