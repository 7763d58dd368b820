// All texts of the page: a row per text, a column per language.  Names in braces are filled in.

/** The languages, each with its own name: those of the receipts. */
export const languages = { en: "English", de: "Deutsch", fr: "Français", es: "Español" };

/** A language for tests: right to left, 1.4 times as long. */
export const pseudo = "pseudo";

const rows = {
  "page.title": ["Kiosk", "Kiosk", "Borne", "Quiosco"],
  "tools.label": ["Display settings", "Anzeige", "Affichage", "Pantalla"],
  "tools.language": ["Language", "Sprache", "Langue", "Idioma"],
  "tools.large": ["Large text", "Große Schrift", "Grand texte", "Texto grande"],
  "tools.low": ["Lower controls", "Tasten nach unten", "Commandes en bas", "Controles abajo"],
  "tools.again": ["Say it again", "Noch einmal vorlesen", "Répéter", "Repetir"],
  "tools.pause": ["Pause speech", "Vorlesen anhalten", "Pause de la voix", "Pausar la voz"],
  "tools.quieter": ["Quieter", "Leiser", "Moins fort", "Más bajo"],
  "tools.louder": ["Louder", "Lauter", "Plus fort", "Más alto"],
  "action.back": ["Back", "Zurück", "Retour", "Atrás"],
  "action.cancel": ["Cancel", "Abbrechen", "Annuler", "Cancelar"],
  "action.retry": ["Try again", "Noch einmal versuchen", "Réessayer", "Intentar de nuevo"],
  "action.finish": ["Finish", "Fertig", "Terminer", "Terminar"],
  "action.restart": ["Back to the start", "Zum Anfang", "Retour à l’accueil", "Volver al inicio"],

  "connecting.title": ["One moment, please", "Einen Moment, bitte", "Un instant, s’il vous plaît", "Un momento, por favor"],
  "connecting.lead": ["The kiosk is getting ready.", "Der Kiosk wird vorbereitet.", "La borne se prépare.", "El quiosco se está preparando."],
  "occupied.lead": ["This page is open in another window.", "Diese Seite ist in einem anderen Fenster offen.", "Cette page est ouverte dans une autre fenêtre.", "Esta página está abierta en otra ventana."],
  "link.lost": ["The kiosk is connecting again.", "Der Kiosk verbindet sich neu.", "La borne se reconnecte.", "El quiosco se está reconectando."],
  "unavailable.title": ["This kiosk cannot be used", "Dieser Kiosk ist nicht benutzbar", "Cette borne est inutilisable", "Este quiosco no se puede usar"],
  "unavailable.noHost": ["This page works only on the kiosk itself.", "Diese Seite funktioniert nur am Kiosk selbst.", "Cette page ne fonctionne que sur la borne.", "Esta página solo funciona en el propio quiosco."],
  "outOfService.title": ["Out of service", "Außer Betrieb", "Hors service", "Fuera de servicio"],
  "outOfService.lead": ["Please use another kiosk, or ask the staff.", "Bitte nehmen Sie einen anderen Kiosk, oder fragen Sie das Personal.", "Utilisez une autre borne ou adressez-vous au personnel.", "Use otro quiosco o consulte al personal."],

  "launcher.title": ["Welcome", "Willkommen", "Bienvenue", "Bienvenido"],
  "launcher.lead": ["What would you like to do?", "Was möchten Sie tun?", "Que souhaitez-vous faire ?", "¿Qué desea hacer?"],
  "launcher.devices": ["At this kiosk", "An diesem Kiosk", "Sur cette borne", "En este quiosco"],
  "journey.payment.title": ["Pay", "Bezahlen", "Payer", "Pagar"],
  "journey.payment.lead": ["With a contactless card or a phone", "Mit kontaktloser Karte oder Telefon", "Par carte sans contact ou téléphone", "Con tarjeta sin contacto o teléfono"],
  "journey.passport.title": ["Check a passport", "Pass prüfen", "Vérifier un passeport", "Comprobar un pasaporte"],
  "journey.passport.lead": ["Reads the chip of a passport or an identity card", "Liest den Chip von Pass oder Personalausweis", "Lit la puce d’un passeport ou d’une carte d’identité", "Lee el chip de un pasaporte o documento de identidad"],
  "journey.photo.title": ["Photograph a document", "Dokument fotografieren", "Photographier un document", "Fotografiar un documento"],
  "journey.photo.lead": ["A picture of a document, without its chip", "Ein Bild des Dokuments, ohne Chip", "Une image du document, sans la puce", "Una imagen del documento, sin el chip"],
  "journey.passes.title": ["Show my loyalty card", "Kundenkarte zeigen", "Montrer ma carte de fidélité", "Mostrar mi tarjeta de cliente"],
  "journey.passes.lead": ["From the wallet of your phone", "Aus der Wallet Ihres Telefons", "Depuis le wallet de votre téléphone", "Desde la cartera de su teléfono"],
  "journey.checkout.title": ["More ways to pay", "Weitere Zahlungsarten", "Autres moyens de paiement", "Otras formas de pago"],
  "journey.checkout.lead": ["Card, voucher or contactless", "Karte, Gutschein oder kontaktlos", "Carte, bon d’achat ou sans contact", "Tarjeta, vale o sin contacto"],
  "capability.camera.document": ["Document camera", "Dokumentenkamera", "Caméra pour documents", "Cámara de documentos"],
  "capability.nfc.read": ["Chip reader", "Chip-Leser", "Lecteur de puce", "Lector de chip"],
  "capability.payment.start": ["Card payment", "Kartenzahlung", "Paiement par carte", "Pago con tarjeta"],
  "capability.pass.read": ["Loyalty cards", "Kundenkarten", "Cartes de fidélité", "Tarjetas de cliente"],
  "capability.receipt.print": ["Receipt printer", "Belegdrucker", "Imprimante de tickets", "Impresora de recibos"],
  "capability.checkout.start": ["Checkout", "Kasse", "Caisse", "Caja"],
  "capability.ready": ["ready", "bereit", "prêt", "listo"],
  "capability.missing": ["not available", "nicht verfügbar", "non disponible", "no disponible"],
  "warning.title": ["Something is missing", "Etwas fehlt", "Il manque quelque chose", "Falta algo"],
  "warning.lead": ["This needs what the kiosk does not have at the moment:", "Dafür fehlt dem Kiosk gerade:", "La borne ne dispose pas actuellement de :", "En este momento el quiosco no dispone de:"],
  "warning.choice": ["You can continue, but it will probably not work to the end.", "Sie können fortfahren, doch es wird wohl nicht bis zum Ende gelingen.", "Vous pouvez continuer, mais l’opération n’aboutira probablement pas.", "Puede continuar, pero probablemente no se podrá completar."],
  "warning.continue": ["Continue anyway", "Trotzdem fortfahren", "Continuer quand même", "Continuar de todos modos"],

  "key.title": ["Open the chip", "Den Chip öffnen", "Ouvrir la puce", "Abrir el chip"],
  "key.lead": ["The chip opens only with what is printed in the document.", "Der Chip öffnet sich nur mit dem, was im Dokument steht.", "La puce ne s’ouvre qu’avec les données imprimées dans le document.", "El chip solo se abre con lo que está impreso en el documento."],
  "key.method": ["What do you want to type?", "Was möchten Sie eingeben?", "Que voulez-vous saisir ?", "¿Qué quiere escribir?"],
  "key.method.fields": ["Number and dates", "Nummer und Daten", "Numéro et dates", "Número y fechas"],
  "key.method.mrz": ["Lines with <<<", "Zeilen mit <<<", "Lignes avec <<<", "Líneas con <<<"],
  "key.method.can": ["6-digit number", "6-stellige Zahl", "Code à 6 chiffres", "Número de 6 cifras"],
  "key.number": ["Document number", "Dokumentennummer", "Numéro du document", "Número del documento"],
  "key.birth": ["Date of birth", "Geburtsdatum", "Date de naissance", "Fecha de nacimiento"],
  "key.expiry": ["Valid until", "Gültig bis", "Valable jusqu’au", "Válido hasta"],
  "key.date.hint": ["day month year: 27 03 1985", "Tag Monat Jahr: 27 03 1985", "jour mois année : 27 03 1985", "día mes año: 27 03 1985"],
  "key.number.hint": ["as printed: C01X00T47", "wie gedruckt: C01X00T47", "comme imprimé : C01X00T47", "como está impreso: C01X00T47"],
  "key.mrz": ["The two or three lines", "Die zwei oder drei Zeilen", "Les deux ou trois lignes", "Las dos o tres líneas"],
  "key.mrz.hint": ["at the bottom of the page with your photo, or on the back of the card", "unten auf der Seite mit Ihrem Foto oder auf der Rückseite der Karte", "au bas de la page avec votre photo ou au dos de la carte", "al pie de la página con su foto o en el reverso de la tarjeta"],
  "key.can": ["Card access number", "Zugangsnummer (CAN)", "Numéro d’accès (CAN)", "Número de acceso (CAN)"],
  "key.can.hint": ["six digits on the front of the document", "sechs Ziffern auf der Vorderseite", "six chiffres au recto du document", "seis cifras en el anverso del documento"],
  "key.photo": ["Take a picture", "Bild aufnehmen", "Prendre une photo", "Tomar una foto"],
  "key.submit": ["Read the chip", "Chip lesen", "Lire la puce", "Leer el chip"],
  "key.wrong": ["Please correct the marked fields.", "Bitte berichtigen Sie die markierten Felder.", "Veuillez corriger les champs signalés.", "Corrija los campos marcados."],
  "wrong.number": ["Letters and digits, as printed.", "Buchstaben und Ziffern, wie gedruckt.", "Lettres et chiffres, comme imprimés.", "Letras y cifras, como están impresas."],
  "wrong.date": ["Not a date. Eight digits: day, month, year.", "Kein Datum. Acht Ziffern: Tag, Monat, Jahr.", "Ce n’est pas une date. Huit chiffres : jour, mois, année.", "No es una fecha. Ocho cifras: día, mes, año."],
  "wrong.can": ["Six digits.", "Sechs Ziffern.", "Six chiffres.", "Seis cifras."],
  "wrong.mrz.form": ["Two lines of 44 or 36 letters, or three of 30.", "Zwei Zeilen mit 44 oder 36 Zeichen, oder drei mit 30.", "Deux lignes de 44 ou 36 caractères, ou trois de 30.", "Dos líneas de 44 o 36 caracteres, o tres de 30."],
  "wrong.mrz.digits": ["A check digit does not fit: please compare each letter.", "Eine Prüfziffer stimmt nicht: bitte jedes Zeichen vergleichen.", "Un chiffre de contrôle ne correspond pas : comparez chaque caractère.", "Una cifra de control no coincide: compare cada carácter."],
  "keypad.label": ["Keys for: {field}", "Tasten für: {field}", "Touches pour : {field}", "Teclas para: {field}"],
  "keypad.erase": ["Erase", "Löschen", "Effacer", "Borrar"],
  "keypad.space": ["Space", "Leerzeichen", "Espace", "Espacio"],
  "keypad.newline": ["Next line", "Neue Zeile", "Ligne suivante", "Línea siguiente"],

  "hold.present.title": ["Lay the document on the reader", "Dokument auf den Leser legen", "Posez le document sur le lecteur", "Coloque el documento sobre el lector"],
  "hold.present.lead": ["Close the passport, and leave it there until we say so.", "Schließen Sie den Pass, und lassen Sie ihn liegen, bis wir es sagen.", "Fermez le passeport et laissez-le jusqu’à notre signal.", "Cierre el pasaporte y déjelo hasta que le avisemos."],
  "hold.access.title": ["Opening the chip", "Chip wird geöffnet", "Ouverture de la puce", "Abriendo el chip"],
  "hold.reading.title": ["Reading", "Wird gelesen", "Lecture en cours", "Leyendo"],
  "hold.checking.title": ["Checking", "Wird geprüft", "Vérification en cours", "Comprobando"],
  "hold.lead": ["Hold still, please.", "Bitte nicht bewegen.", "Ne bougez pas, s’il vous plaît.", "No lo mueva, por favor."],
  "hold.progress": ["Progress", "Fortschritt", "Avancement", "Progreso"],

  "result.yes.title": ["The document is genuine", "Das Dokument ist echt", "Le document est authentique", "El documento es auténtico"],
  "result.yes.lead": ["The chip’s data are signed by the issuing country and unchanged.", "Die Daten des Chips sind vom Ausstellerstaat signiert und unverändert.", "Les données de la puce sont signées par le pays émetteur et inchangées.", "Los datos del chip están firmados por el país emisor y no han cambiado."],
  "result.no.title": ["The document could not be accepted", "Das Dokument wird nicht angenommen", "Le document n’est pas accepté", "El documento no se acepta"],
  "result.no.lead": ["The check of the chip failed. Please see the staff.", "Die Prüfung des Chips ist fehlgeschlagen. Bitte wenden Sie sich an das Personal.", "La vérification de la puce a échoué. Adressez-vous au personnel.", "La comprobación del chip ha fallado. Diríjase al personal."],
  "result.unknown.title": ["The document was read", "Das Dokument wurde gelesen", "Le document a été lu", "El documento se ha leído"],
  "result.unknown.lead": ["We could not find out here who signed its data.", "Wer die Daten signiert hat, ließ sich hier nicht feststellen.", "Nous n’avons pas pu établir ici qui a signé ses données.", "Aquí no se pudo averiguar quién firmó sus datos."],
  "result.clone.yes": ["The chip is the original.", "Der Chip ist das Original.", "La puce est l’originale.", "El chip es el original."],
  "result.clone.no": ["The chip is a copy.", "Der Chip ist eine Kopie.", "La puce est une copie.", "El chip es una copia."],
  "result.clone.unknown": ["Whether the chip is the original was not checked.", "Ob der Chip das Original ist, wurde nicht geprüft.", "L’originalité de la puce n’a pas été vérifiée.", "No se comprobó si el chip es el original."],
  "result.expired": ["The document has expired.", "Das Dokument ist abgelaufen.", "Le document est périmé.", "El documento ha caducado."],
  "result.portrait": ["Photo from the chip", "Foto aus dem Chip", "Photo de la puce", "Foto del chip"],
  "result.name": ["Name", "Name", "Nom", "Nombre"],
  "result.nationality": ["Nationality", "Staatsangehörigkeit", "Nationalité", "Nacionalidad"],
  "result.findings": ["Details for the staff", "Einzelheiten für das Personal", "Détails pour le personnel", "Detalles para el personal"],

  "photo.lead": ["Lay the page with your photo under the camera. Then press the button.", "Legen Sie die Seite mit Ihrem Foto unter die Kamera. Dann drücken Sie die Taste.", "Placez la page avec votre photo sous la caméra, puis appuyez sur le bouton.", "Coloque la página con su foto bajo la cámara y pulse el botón."],
  "photo.take": ["Take the picture", "Aufnehmen", "Prendre la photo", "Tomar la foto"],
  "photo.wait.title": ["Taking the picture", "Aufnahme läuft", "Prise de la photo", "Tomando la foto"],
  "photo.shown.title": ["Is everything readable?", "Ist alles lesbar?", "Tout est-il lisible ?", "¿Se lee todo bien?"],
  "photo.good": ["The picture is sharp.", "Das Bild ist scharf.", "La photo est nette.", "La foto es nítida."],
  "photo.blurred": ["The picture is blurred: please take it again.", "Das Bild ist unscharf: bitte noch einmal aufnehmen.", "La photo est floue : veuillez la reprendre.", "La foto está borrosa: tómela de nuevo."],
  "photo.glare": ["Light is reflected: please turn the document a little.", "Licht spiegelt sich: bitte das Dokument etwas drehen.", "Il y a un reflet : tournez un peu le document.", "Hay un reflejo: gire un poco el documento."],
  "photo.partly": ["A part is outside the picture: please move the document.", "Ein Teil ist nicht im Bild: bitte das Dokument verschieben.", "Une partie est hors de l’image : déplacez le document.", "Una parte queda fuera: mueva el documento."],
  "photo.picture": ["Picture of the document", "Bild des Dokuments", "Photo du document", "Foto del documento"],
  "photo.again": ["Take it again", "Noch einmal", "Reprendre", "Repetir"],
  "photo.use": ["Use this picture", "Bild verwenden", "Utiliser cette photo", "Usar esta foto"],

  "order.title": ["Your order", "Ihre Bestellung", "Votre commande", "Su pedido"],
  "order.total": ["Total", "Summe", "Total", "Total"],
  "order.item": ["Item", "Artikel", "Article", "Artículo"],
  "order.quantity": ["Quantity", "Anzahl", "Quantité", "Cantidad"],
  "order.price": ["Price", "Preis", "Prix", "Precio"],
  "order.pay": ["Pay {amount}", "{amount} bezahlen", "Payer {amount}", "Pagar {amount}"],
  "order.none.title": ["There is nothing to pay", "Es ist nichts zu bezahlen", "Il n’y a rien à payer", "No hay nada que pagar"],
  "order.none.lead": ["The kiosk has no order for you.", "Der Kiosk hat keine Bestellung für Sie.", "La borne n’a pas de commande pour vous.", "El quiosco no tiene ningún pedido para usted."],
  "pay.amount": ["Amount", "Betrag", "Montant", "Importe"],
  "pay.idle.lead": ["The reader is getting ready.", "Der Leser wird vorbereitet.", "Le lecteur se prépare.", "El lector se está preparando."],
  "pay.presentCard.title": ["Hold your card or phone to the reader", "Karte oder Telefon an den Leser halten", "Présentez votre carte ou téléphone", "Acerque su tarjeta o teléfono al lector"],
  "pay.presentCard.lead": ["Hold it there until you hear the signal.", "Halten Sie es dort, bis Sie den Ton hören.", "Maintenez jusqu’au signal sonore.", "Manténgalo hasta oír la señal."],
  "pay.reading.title": ["Hold still", "Nicht bewegen", "Ne bougez pas", "No lo mueva"],
  "pay.reading.lead": ["Your card is being read.", "Ihre Karte wird gelesen.", "Lecture de votre carte.", "Leyendo su tarjeta."],
  "pay.removeCard.title": ["Take your card away", "Karte wegnehmen", "Retirez votre carte", "Retire su tarjeta"],
  "pay.removeCard.lead": ["The card has been read.", "Die Karte ist gelesen.", "La carte a été lue.", "La tarjeta se ha leído."],
  "pay.processing.lead": ["Your bank is being asked.", "Ihre Bank wird gefragt.", "Interrogation de votre banque.", "Consultando a su banco."],
  "pay.seePhone.title": ["Look at your phone", "Sehen Sie auf Ihr Telefon", "Regardez votre téléphone", "Mire su teléfono"],
  "pay.seePhone.lead": ["Follow what it says, then hold it to the reader again.", "Folgen Sie der Anzeige, und halten Sie es dann noch einmal an den Leser.", "Suivez ses instructions, puis présentez-le de nouveau.", "Siga sus instrucciones y acérquelo de nuevo al lector."],
  "pay.tryAgain.title": ["Once more, please", "Bitte noch einmal", "Encore une fois, s’il vous plaît", "Otra vez, por favor"],
  "pay.tryAgain.lead": ["The card was taken away too soon. Hold it to the reader again.", "Die Karte war zu kurz da. Halten Sie sie noch einmal an den Leser.", "La carte a été retirée trop tôt. Présentez-la de nouveau.", "La tarjeta se retiró demasiado pronto. Acérquela otra vez."],
  "pay.otherCard.title": ["Please use another card", "Bitte eine andere Karte nehmen", "Utilisez une autre carte", "Use otra tarjeta"],
  "pay.otherCard.lead": ["This card cannot be used here, or there was more than one.", "Diese Karte geht hier nicht, oder es waren mehrere.", "Cette carte n’est pas acceptée ici, ou il y en avait plusieurs.", "Esta tarjeta no se acepta aquí, o había más de una."],
  "pay.tooLate": ["It is too late to cancel.", "Zum Abbrechen ist es zu spät.", "Il est trop tard pour annuler.", "Ya es tarde para cancelar."],
  "pay.approved.title": ["Paid", "Bezahlt", "Payé", "Pagado"],
  "pay.approved.lead": ["Thank you.", "Vielen Dank.", "Merci.", "Gracias."],
  "pay.declined.title": ["Not authorized", "Abgelehnt", "Paiement refusé", "Pago denegado"],
  "pay.declined.lead": ["Nothing was paid. You can try again or use another card.", "Es wurde nichts bezahlt. Sie können es noch einmal oder mit einer anderen Karte versuchen.", "Rien n’a été payé. Réessayez ou utilisez une autre carte.", "No se ha pagado nada. Puede intentarlo de nuevo o usar otra tarjeta."],
  "pay.cancelled.title": ["Payment canceled", "Zahlung abgebrochen", "Paiement annulé", "Pago cancelado"],
  "pay.cancelled.lead": ["Nothing was paid.", "Es wurde nichts bezahlt.", "Rien n’a été payé.", "No se ha pagado nada."],
  "pay.unknown.title": ["The payment may have happened", "Die Zahlung kann erfolgt sein", "Le paiement a peut-être eu lieu", "El pago puede haberse realizado"],
  "pay.unknown.lead": ["We do not know whether your card was charged. Please do not pay again, and ask the staff.", "Wir wissen nicht, ob Ihre Karte belastet wurde. Bitte bezahlen Sie nicht noch einmal, und fragen Sie das Personal.", "Nous ne savons pas si votre carte a été débitée. Ne payez pas de nouveau et adressez-vous au personnel.", "No sabemos si se cargó su tarjeta. No pague de nuevo y consulte al personal."],
  "pay.lost.lead": ["The connection was lost. Please wait, and do not pay again: we are finding out.", "Die Verbindung ging verloren. Bitte warten Sie, und bezahlen Sie nicht noch einmal: wir klären es.", "La connexion a été perdue. Patientez et ne payez pas de nouveau : nous vérifions.", "Se perdió la conexión. Espere y no pague de nuevo: lo estamos comprobando."],
  "pay.loyalty": ["Loyalty card {member}: you saved {saved}.", "Kundenkarte {member}: Sie haben {saved} gespart.", "Carte de fidélité {member} : vous économisez {saved}.", "Tarjeta de cliente {member}: ha ahorrado {saved}."],
  "receipt.print": ["Print the receipt", "Beleg drucken", "Imprimer le ticket", "Imprimir el recibo"],
  "receipt.printed": ["The receipt is being printed.", "Der Beleg wird gedruckt.", "Le ticket est en cours d’impression.", "El recibo se está imprimiendo."],
  "receipt.failed": ["The receipt could not be printed. Please ask the staff.", "Der Beleg konnte nicht gedruckt werden. Bitte fragen Sie das Personal.", "Le ticket n’a pas pu être imprimé. Adressez-vous au personnel.", "No se pudo imprimir el recibo. Consulte al personal."],

  "passes.hold.title": ["Hold your phone to the reader", "Telefon an den Leser halten", "Présentez votre téléphone au lecteur", "Acerque su teléfono al lector"],
  "passes.hold.lead": ["Your wallet shows the card by itself.", "Ihre Wallet zeigt die Karte von selbst.", "Votre wallet affiche la carte automatiquement.", "Su cartera muestra la tarjeta por sí sola."],
  "passes.title": ["Your cards", "Ihre Karten", "Vos cartes", "Sus tarjetas"],
  "passes.none": ["Your phone showed no card.", "Ihr Telefon hat keine Karte gezeigt.", "Votre téléphone n’a présenté aucune carte.", "Su teléfono no mostró ninguna tarjeta."],

  "complete.title": ["Thank you", "Vielen Dank", "Merci", "Gracias"],
  "complete.lead": ["Please take everything that is yours.", "Bitte nehmen Sie alles mit, was Ihnen gehört.", "N’oubliez rien, s’il vous plaît.", "No olvide sus cosas."],
  "reference": ["Reference {reference}", "Vorgang {reference}", "Référence {reference}", "Referencia {reference}"],
  "error.title": ["That did not work", "Das hat nicht geklappt", "Cela n’a pas fonctionné", "No ha funcionado"],
  "error.other": ["Something went wrong. Please ask the staff.", "Etwas ist schiefgegangen. Bitte fragen Sie das Personal.", "Un problème est survenu. Adressez-vous au personnel.", "Algo ha ido mal. Consulte al personal."],
  "error.UNSUPPORTED": ["This kiosk cannot do that at the moment.", "Dieser Kiosk kann das gerade nicht.", "Cette borne ne peut pas le faire actuellement.", "Este quiosco no puede hacerlo ahora."],
  "error.CANCELLED": ["It was canceled.", "Es wurde abgebrochen.", "L’opération a été annulée.", "Se canceló."],
  "error.TIMEOUT": ["Nothing came in time. You can try again.", "Es kam nichts rechtzeitig. Sie können es noch einmal versuchen.", "Rien n’est arrivé à temps. Vous pouvez réessayer.", "No llegó nada a tiempo. Puede intentarlo de nuevo."],
  "error.BUSY": ["The kiosk is still busy. Please try again in a moment.", "Der Kiosk ist noch beschäftigt. Bitte versuchen Sie es gleich noch einmal.", "La borne est encore occupée. Réessayez dans un instant.", "El quiosco sigue ocupado. Inténtelo en un momento."],
  "error.DISCONNECTED": ["The connection was lost. Please try again.", "Die Verbindung ging verloren. Bitte versuchen Sie es noch einmal.", "La connexion a été perdue. Réessayez.", "Se perdió la conexión. Inténtelo de nuevo."],
  "error.ACCESS_DENIED": ["The chip did not accept these details. Please compare them with the document.", "Der Chip hat diese Angaben nicht angenommen. Bitte vergleichen Sie sie mit dem Dokument.", "La puce n’a pas accepté ces données. Comparez-les avec le document.", "El chip no aceptó estos datos. Compárelos con el documento."],
  "error.READER_DISCONNECTED": ["The reader was disconnected. Please tell the staff.", "Der Leser wurde getrennt. Bitte sagen Sie dem Personal Bescheid.", "Le lecteur a été débranché. Prévenez le personnel.", "Se desconectó el lector. Avise al personal."],
  "error.CARD_REMOVED": ["The document was taken away too soon.", "Das Dokument wurde zu früh weggenommen.", "Le document a été retiré trop tôt.", "El documento se retiró demasiado pronto."],
  "error.NOT_A_DOCUMENT": ["That is no document with a chip that we can read.", "Das ist kein Dokument mit einem lesbaren Chip.", "Ce n’est pas un document à puce lisible.", "No es un documento con un chip legible."],

  "idle.title": ["Are you still there?", "Sind Sie noch da?", "Êtes-vous toujours là ?", "¿Sigue ahí?"],
  "idle.lead": ["This kiosk starts afresh in {seconds} seconds.", "Der Kiosk beginnt in {seconds} Sekunden von vorn.", "La borne recommence dans {seconds} secondes.", "El quiosco se reinicia en {seconds} segundos."],
  "idle.extend": ["I need more time", "Ich brauche mehr Zeit", "J’ai besoin de plus de temps", "Necesito más tiempo"],
};

/** The keys of all texts. */
export const keys = Object.keys(rows);

const accents = { a: "á", e: "ë", i: "ï", o: "ø", u: "û", n: "ñ", A: "Å", E: "Ê", O: "Ö", C: "Ç" };

/** English with accents, lengthened, names in braces unchanged. */
const stretched = (english) =>
  `${english.replace(/\{\w+\}|[A-Za-z]/g, (match) => accents[match] ?? match)} ${"·~".repeat(Math.ceil(english.length / 5))}`;

/** The text of a key as a pattern with names in braces. */
export function pattern(key, locale) {
  const row = rows[key];
  if (!row) throw new RangeError("no such text");
  if (locale === pseudo) return stretched(row[0]);
  return row[Math.max(0, Object.keys(languages).indexOf(locale))];
}

/** The text of a key, with its values. */
export function text(key, locale, values = {}) {
  return pattern(key, locale).replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ""));
}

/** BCP 47 tag and direction. */
export function writing(locale) {
  return locale === pseudo ? { lang: "ar-XB", dir: "rtl" } : { lang: locale, dir: "ltr" };
}
