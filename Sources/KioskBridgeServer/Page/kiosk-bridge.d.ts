/** Declarations of kiosk-bridge.js: the kiosk's hardware for a web page that the kiosk itself serves. */

export declare const protocolVersion: 1;
export declare const subprotocol: "kiosk.bridge.v1";

export type BridgeErrorCode =
  | "UNSUPPORTED_ACTION"
  | "UNSUPPORTED"
  | "PERMISSION_DENIED"
  | "CANCELLED"
  | "TIMEOUT"
  | "BUSY"
  | "INVALID_REQUEST"
  | "INTERNAL_ERROR"
  | "VERSION_MISMATCH"
  | "DISCONNECTED"
  | "ACCESS_DENIED"
  | "READER_DISCONNECTED"
  | "CARD_REMOVED"
  | "NOT_A_DOCUMENT";

/** A request that failed. */
export declare class BridgeError extends Error {
  constructor(code: string, message: string, facts?: { recoverable?: boolean; correlationId?: string | null });
  /** One of BridgeErrorCode, or a code of a newer host. */
  readonly code: BridgeErrorCode | (string & {});
  /** Whether the customer may try again. */
  readonly recoverable: boolean;
  /** The request's, where it was sent. */
  readonly correlationId: string | null;
}

/** An amount; `text` is what people are shown. */
export interface Money {
  /** In minor units; a string beyond 2^53. */
  amount: number | string;
  /** ISO 4217. */
  currency: string;
  /** The number of decimals. */
  exponent: number;
  text: string;
}

/** An image in base64. */
export interface BridgeImage {
  imageData: string;
  mimeType: "image/jpeg" | "image/png" | "image/webp";
  width: number;
  height: number;
}

export interface Capability {
  supported: boolean;
  version: string;
  permissionState: "granted" | "denied" | "prompt" | "unavailable";
  /** Why it is not supported. */
  reason?: string;
}

export type Capabilities = Record<string, Capability>;

export interface Order {
  id: string;
  lines: { title: string; quantity: number | string; total: Money }[];
  total: Money;
}

export type PaymentState =
  | "idle"
  | "presentCard"
  | "reading"
  | "removeCard"
  | "processing"
  | "seePhone"
  | "tryAgain"
  | "otherCard"
  | "approved"
  | "declined"
  | "cancelled"
  | "unknown"
  | "outOfService";

export type PaymentOutcome = "approved" | "declined" | "unknown";

export interface CheckoutNetwork {
  id: string;
  name: string;
}

export interface CheckoutMethod {
  id: string;
  kind: string;
  name: string;
  networks: CheckoutNetwork[];
  surcharge?: Money;
  /** The surcharge in words. */
  text?: string;
}

/** A part of a form.  Its texts are in the page's language. */
export type CheckoutElement =
  | { kind: "group"; title: string; elements: CheckoutElement[] }
  | {
      kind: "field";
      field: string;
      label: string;
      placeholder: string;
      isRequired: boolean;
      /** Masked, or empty for a secret. */
      value: string;
      error: string | null;
      /** Names the error to `speech.say`. */
      errorKey: string | null;
      maximumLength: number;
      autocomplete: string;
      inputMode: string;
      isSecret: boolean;
    }
  | { kind: "networks"; label: string; networks: CheckoutNetwork[]; chosen: string | null }
  | { kind: "button"; label: string; isEnabled: boolean; isLoading: boolean };

/** The route of a checkout, and the state of its scope.  It has no secret. */
export interface Checkout {
  order: string;
  route: "start" | "methodSelection" | "method" | "processing" | "challenge" | "success" | "failure";
  amount: Money;
  surcharge?: Money;
  text?: string;
  selection?: {
    status: "loading" | "ready" | "error";
    text: string;
    /** The number of methods in words. */
    count?: string;
    /** The label of the search, where there are many methods. */
    search?: string;
    methods?: CheckoutMethod[];
  };
  method?: CheckoutMethod;
  form?: { elements: CheckoutElement[]; network?: CheckoutNetwork };
  tap?: { state: PaymentState; text: string };
  /** Where the customer confirms the payment. */
  page?: string;
  /** A QR code of that page for the customer's phone: 1 is dark, row by row, without the quiet zone. */
  code?: { label: string; modules: string[] };
  card?: string;
  /** Whether there can be a receipt: of a card that was read or typed. */
  receipt?: boolean;
  recovery?: "retry" | "otherMethod" | "correctFields" | "askStaff";
  hint?: string;
  /** The surcharge, if there is one, and the total, in words. */
  sums: string[];
  /** What `speech.say` is asked for when this is shown. */
  said: { key: string; values?: Record<string, string> }[];
  loyalty?: { member: string; saved: Money };
  /** What the customer may ask for now, besides what a form or a selection has. */
  actions: { action: "checkout.back" | "checkout.retry" | "checkout.cancel"; label: string }[];
}

/** What the host knows at the moment of a connection. */
export interface Snapshot {
  inService: boolean;
  /** Whether the machine sleeps or its screen is locked. */
  background?: boolean;
  order: Order | null;
  payment: { order: string; state: PaymentState; outcome?: PaymentOutcome } | null;
  checkout?: Checkout | null;
  capabilities: Capabilities;
}

export type Verdict = "yes" | "no" | "unknown";

export interface DocumentAnswer {
  chipRead: boolean;
  dataGroups: string[];
  document: {
    type: string;
    issuer: string;
    number: string;
    name: string;
    surname: string;
    givenNames: string;
    nationality: string;
    dateOfBirth: string;
    sex: string;
    dateOfExpiry: string;
  };
  portrait?: BridgeImage;
  security: { authentic: Verdict; chipGenuine: Verdict; access: string; findings: string[] };
}

export interface NDEFAnswer {
  records: { type: string; text?: string; uri?: string }[];
}

/** Opens a document's chip: lines joined by "\n", or what they say (dates as YYMMDD), or the card access number. */
export type DocumentKey =
  | { mrz: string }
  | { documentNumber: string; dateOfBirth: string; dateOfExpiry: string }
  | { can: string };

/** Actions, what is sent with them, and what comes back. */
export interface BridgeActions {
  "capability.query": [
    Record<string, never>,
    { hostVersion: string; protocolVersion: number; capabilities: Capabilities },
  ];
  "camera.document.capture": [
    { documentType: "passport" | "idCard"; side: "front" | "back" },
    /** Each quality is within 0...1. */
    BridgeImage & { quality: { sharpness: number; glare: number; coverage: number } },
  ];
  "nfc.read": [
    ({ type: "document"; dataGroups?: number[]; timeout?: number } & DocumentKey) | { type: "ndef"; timeout?: number },
    DocumentAnswer | NDEFAnswer,
  ];
  "nfc.cancel": [Record<string, never>, Record<string, unknown>];
  "order.get": [{ locale?: string }, { order: Order | null }];
  "payment.start": [
    { order: string },
    {
      outcome: PaymentOutcome;
      amount: Money;
      message?: string;
      loyalty?: { member: string; saved: Money };
      receipt: boolean;
    },
  ];
  "payment.cancel": [Record<string, never>, { cancelled: boolean }];
  "checkout.start": [{ locale?: string }, Record<string, unknown>];
  "checkout.locale": [{ locale: string }, Record<string, unknown>];
  "checkout.select": [{ method: string }, Record<string, unknown>];
  "checkout.search": [{ query: string }, Record<string, unknown>];
  "checkout.update": [{ field: string; value: string }, Record<string, unknown>];
  "checkout.leave": [{ field: string }, Record<string, unknown>];
  "checkout.chooseNetwork": [{ network: string }, Record<string, unknown>];
  "checkout.submit": [Record<string, never>, Record<string, unknown>];
  "checkout.back": [Record<string, never>, Record<string, unknown>];
  "checkout.retry": [Record<string, never>, Record<string, unknown>];
  "checkout.cancel": [Record<string, never>, Record<string, unknown>];
  "pass.read": [Record<string, never>, { passes: { merchant: string; status: string; member?: string }[] }];
  "receipt.print": [{ order: string; locale?: string }, { printed: boolean }];
  "speech.stop": [Record<string, never>, Record<string, unknown>];
  "speech.say": [{ key: string; values?: Record<string, string>; volume?: number }, Record<string, unknown>];
}

/** Events, and what they say.  Those of the host have a `sequence`, too. */
export interface BridgeEvents {
  /** There is a connection, and this is what the host knows. */
  open: Snapshot;
  /** Another page is connected: this one waits until that has gone. */
  occupied: Record<string, never>;
  /** The link is lost; it comes back by itself. */
  lost: { code: number };
  /** The host is not the one that served this page, or speaks another version: there is no second try. */
  refused: BridgeError;
  /** The listeners of an event of the host have been called, and every answer before it was given.  What drives a page waits for it. */
  told: { sequence: number };
  "host.ready": { hostVersion: string; protocolVersion: number; timestamp: unknown; snapshot: Snapshot };
  "host.background": Record<string, unknown>;
  "host.foreground": Record<string, unknown>;
  "host.capabilitiesChanged": { capabilities: Capabilities };
  "host.outOfService": { inService: boolean };
  "host.locale": { locale: string };
  "host.headphones": { connected: boolean };
  "journey.cancel": { reason: string };
  "nfc.progress": { request: string; step: "present" | "access" | "reading" | "checking"; fraction: number };
  "payment.state": { order: string; state: PaymentState };
  "checkout.state": Checkout;
}

/** What the page tells the host. */
export interface PageEvents {
  "journey.started": Record<string, never>;
  "journey.complete": { status: string; referenceId: string };
  "journey.error": { message: string };
  "journey.cancel": { reason: string };
  "journey.activity": Record<string, never>;
}

/** A connection to the kiosk's host, which comes back by itself. */
export declare class KioskBridge extends EventTarget {
  constructor();
  /** Whether a host serves this page; where none does, each request fails with UNSUPPORTED. */
  readonly isEmbedded: boolean;
  /** Whether there is a connection, and the host has proven that it knows the token. */
  readonly isOpen: boolean;
  /** Connects, and from now on connects again whenever the link is lost. */
  connect(): void;
  /** Ends the connection, and with DISCONNECTED each request; only connect() brings another. */
  close(): void;
  /** Calls `handler` with the data of each event of this name; returns what ends that. */
  on<Name extends keyof BridgeEvents>(name: Name, handler: (data: BridgeEvents[Name]) => void): () => void;
  on(name: string, handler: (data: unknown) => void): () => void;
  /**
   * Asks the host.  Rejects with a BridgeError: among others TIMEOUT after `timeout` milliseconds (by default 30 s,
   * longer where a person has to act), DISCONNECTED where the link was lost and the outcome is not known, CANCELLED
   * where `signal` was aborted.
   */
  request<Action extends keyof BridgeActions>(
    action: Action,
    data?: BridgeActions[Action][0],
    options?: { timeout?: number; signal?: AbortSignal },
  ): Promise<BridgeActions[Action][1]>;
  request(action: string, data?: object, options?: { timeout?: number; signal?: AbortSignal }): Promise<unknown>;
  /** Tells the host something; without effect while there is no connection. */
  send<Name extends keyof PageEvents>(name: Name, data?: PageEvents[Name]): void;
}
