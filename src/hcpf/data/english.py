"""Words of other languages in the names of columns, in English."""

import unicodedata

_ENGLISH = {
    "customer": "kunde kunden kundennummer kundennr kundenid cliente clienti klant",
    "user": "utilisateur nutzer benutzer usuario utente gebruiker",
    "buyer": "kaufer besteller acheteur comprador",
    "donor": "spender donateur donante",
    "reader": "leser lecteur lector",
    "household": "haushalt",
    "article": "artikel artikelnummer artikelnr articulo articolo",
    "product": "produkt produktnummer produit producto prodotto",
    "book": "buch livre libro boek",
    "song": "lied chanson cancion",
    "page": "seite pagina",
    "title": "titel titre titulo titolo",
    "amount": "betrag gesamtbetrag montant importe monto importo bedrag",
    "revenue": "umsatz erlos",
    "total": "summe gesamt",
    "quantity": "menge stuckzahl quantite cantidad quantita aantal",
    "count": "anzahl",
    "price": "preis einzelpreis stuckpreis prix precio prezzo prijs",
    "rating": "bewertung",
    "stars": "sterne etoiles",
    "value": "wert valeur valor valore waarde",
    "donation": "spende donacion",
    "date": "datum bestelldatum rechnungsdatum fecha",
    "invoice": "rechnung rechnungsnummer rechnungsnr facture factura fattura factuur",
    "order": "bestellung bestellnummer bestellnr auftrag commande pedido ordine",
    "name": "nom nome naam artikelname produktname",
    "description": "bezeichnung artikelbezeichnung beschreibung libelle descripcion descrizione "
    "omschrijving",
}  # fmt: skip
_BY_WORD = {word: english for english, words in _ENGLISH.items() for word in words.split()}


def without_accents(text: str) -> str:
    """Return text in which letters have no accents.

    >>> without_accents("Käufer, quantité")
    'Kaufer, quantite'
    """
    parts = unicodedata.normalize("NFKD", text)
    return "".join(part for part in parts if not unicodedata.combining(part))


def in_english(word: str) -> str:
    """Return a German, French, Spanish, Italian or Dutch word for a column in English.

    Other words are returned as they are.

    >>> in_english("Kunde"), in_english("quantité"), in_english("movie")
    ('customer', 'quantity', 'movie')
    """
    return _BY_WORD.get(without_accents(word).lower(), word)
