"""Small files in the published formats, and what each reader must make of them."""

import json
from dataclasses import dataclass, field
from pathlib import Path

SHA = ["00000c289a1829a808ac09c00daf10bc3c4e223b", "00001411dc427966b17297bf4d69e7e193135d89"]
DONATION = ["7c2b7e2c8a6f4a35b5dd7ec2b1f0c0de", "ffffb4f85b2efce4e4ac2a9d1a3ba3ca"]
LONG = "é" * 300


def json_lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


@dataclass
class Format:
    """A file, how it is read, and the entries that must come out, in any order."""

    reader: str
    name: str
    text: str
    entries: set
    options: dict = field(default_factory=dict)
    encoding: str = "utf-8"
    note: str = ""

    def __str__(self):
        return "-".join(filter(None, [self.reader, self.name, self.note]))

    def write(self, folder: Path) -> Path:
        path = folder / self.name
        path.write_bytes(self.text.encode(self.encoding))
        return path


BOOKS = (
    '"User-ID";"ISBN";"Book-Rating"\r\n"276725";"034545104X";"0"\r\n"276726";"0155061224";"5"\r\n'
    '"276729";"\\"0521795028";"6"\r\n"276726";"0155061224";"7"\r\n"276729";"Ä 9";"10"\r\n'
)
FOODS = (
    "product/productId: B001E4KFG0\nreview/userId: A3SGXH7AUHU8GW\nreview/profileName: delm: x\n"
    "review/helpfulness: 1/1\nreview/score: 5.0\nreview/time: 1303862400\n"
    "review/summary: Good\nreview/text: I have\xe9: bought\n\n"
    "product/productId: B00813GRG4\nreview/userId: #oc-R1\nreview/profileName: dll\n"
    "review/helpfulness: 0/0\nreview/score: 1.0\nreview/time: 1346976000\n"
    "review/summary: Not\nreview/text: Product\n"
)
FOODS_CSV = (
    "Id,ProductId,UserId,ProfileName,HelpfulnessNumerator,HelpfulnessDenominator,Score,Time,"
    'Summary,Text\n1,B001,A3,"del, ""m""",1,1,5,1303862400,Good,"two\nlines, here"\n'
    "2,B002,A1,dll,0,0,1,1346976000,Not,x\n3,B001,A3,delm,1,1,4,1403862400,Good,y\n"
)
WORDPRESS_USERS = json_lines(
    {"inTestSet": False, "uid": "34168956", "likes": [
        {"blog": "18164949", "post_id": "1740778", "like_dt": "2012-04-05 14:10:56"},
        {"blog": "18164949", "post_id": "1740779", "like_dt": "2012-04-05 14:11:56"},
        {"blog": "4", "post_id": "12", "like_dt": "2012-04-05 14:11:57"}]},
    {"inTestSet": True, "uid": "7", "likes": []},
)  # fmt: skip
WORDPRESS_POSTS = json_lines(
    {"blog": "4", "post_id": "12", "date_gmt": "2012-04-01", "likes": [
        {"uid": "7", "dt": "2012-04-05"}, {"uid": "8", "dt": "2012-04-05"}]},
)  # fmt: skip
LOG = "2088948\t1760350\t-1\t1318348785\n2088948\t1774722\t1\t1318348785\n601635\t1774722\t1\t1\n"
STEAM = (
    '151603712,"The Elder Scrolls V Skyrim",purchase,1.0,0\n'
    '151603712,"The Elder Scrolls V Skyrim",play,273.0,0\n'
    '5250,"Half-Life 2, Episode One",purchase,1.0,0\n'
    '5250,"Half-Life 2, Episode One",play,0.5,0\n5250,"Half-Life 2, Episode One",play,0.1,0\n'
)
DONATIONS_2014 = (
    "donationid,projectid,donor_acctid,donor_city,donation_to_project,donation_total,message\n"
    'd1,p1,a1,,42.50,50.00,"for you,\nwith love"\nd2,p1,a1,,8.5,10.00,\nd3,p2,a2,Rome,0,0.00,x\n'
)
OPENDATA_ROW = [DONATION[0], "p1", "a1", "cart", "Rome", "NY", "101", "f", "2015-01-01 00:00:00",
                "42.50", "7.50", "50.00", "t", '"say \\"hi\\", all"']  # fmt: skip
MERCK = 'MOLECULE,"Act",D_4,D_5,D_6\nACT1_M_80,6.0179,0,2,0\nACT1_M_189,4.3003,1,0,11\n'
GENES = (
    "TargetID\tGene_Symbol\tChr\tCoord\tHG00096\tHG00097\n"
    "ENSG00000152931.6\tENSG00000152931.6\t5\t59783540\t0.101857770668185\t0\n"
    "ENSG00000183696.9\tENSG00000183696.9\t7\t48128225\t-8.1831\t8.19\n"
)

FORMATS = [
    Format("movielens", "u.data", "196\t242\t3\t881250949\n186\t302\t5\t891717742\n",
           {(196, 242, 3), (186, 302, 5)}),
    Format("movielens", "ratings.dat", "1::1193::5::978300760\n2::661::0.5::978302109\n",
           {(1, 1193, 5), (2, 661, 0.5)}),
    Format("movielens", "ratings.csv",
           "userId,movieId,rating,timestamp\n1,31,2.5,1260759144\n2,10,4.0,835355493\n",
           {(1, 31, 2.5), (2, 10, 4)}),
    Format("movielens", "ratings.csv", "\ufeffuserId,movieId,rating,timestamp\r\n1,31,2.5,12\r\n",
           {(1, 31, 2.5)}, note="windows"),
    Format("bookcrossing", "BX-Book-Ratings.csv", BOOKS,
           {(276726, "0155061224", 7), (276729, '"0521795028', 6), (276729, "Ä 9", 10)},
           encoding="latin-1"),
    Format("bookcrossing", "BX-Book-Ratings.csv", BOOKS, {(276725, "034545104X", 1)},
           {"kind": "implicit"}, encoding="latin-1", note="implicit"),
    Format("bookcrossing", "BX-Book-Ratings.csv", BOOKS,
           {(276725, "034545104X", 1), (276726, "0155061224", 2), (276729, '"0521795028', 1),
            (276729, "Ä 9", 1)}, {"kind": "all", "duplicates": "sum"},
           encoding="latin-1", note="all"),
    Format("bookcrossing", "Ratings.csv", "User-ID,ISBN,Book-Rating\n8,2005018,5\n9,ü,0\n",
           {(8, 2005018, 5)}),
    Format("netflix", "mv_0000001.txt", "1:\n1488844,3,2005-09-06\n822109,5,2005-05-13\n",
           {(1488844, 1, 3), (822109, 1, 5)}),
    Format("netflix", "combined_data_1.txt",
           "1:\n1488844,3,2005-09-06\n8,5,2005-05-13\n2:\n17:\n8,4,2005-09-05\n",
           {(1488844, 1, 3), (8, 1, 5), (8, 17, 4)}),
    Format("netflix", "combined_data_2.txt", "1:\r\n8,3,2005-09-06\r\n2:\r\n8,4,2005-09-05",
           {(8, 1, 3), (8, 2, 4)}, note="windows"),
    Format("yelp", "yelp_academic_dataset_review.json", json_lines(
        {"review_id": "r", "user_id": "u1", "business_id": "b1", "stars": 5.0, "text": LONG},
        {"review_id": "s", "user_id": "u2", "business_id": "b1", "stars": 2, "text": "a\nb"},
        {"review_id": "t", "user_id": "u1", "business_id": "b1", "stars": 1.0, "text": ""}) + "\n",
        {("u1", "b1", 1), ("u2", "b1", 2)}),
    Format("wordpress_likes", "trainUsers.json", WORDPRESS_USERS,
           {(34168956, 18164949, 2), (34168956, 4, 1)}),
    Format("wordpress_likes", "trainUsers.json", WORDPRESS_USERS,
           {(34168956, 1740778, 1), (34168956, 1740779, 1), (34168956, 12, 1)}, {"item": "post"},
           note="post"),
    Format("wordpress_likes", "trainPostsThin.json", WORDPRESS_POSTS, {(7, 4, 1), (8, 4, 1)}),
    Format("wordpress_likes", "trainPostsThin.json", WORDPRESS_POSTS, {(7, 12, 1), (8, 12, 1)},
           {"item": "post"}, note="post"),
    Format("amazon_fine_foods", "finefoods.txt", FOODS,
           {("A3SGXH7AUHU8GW", "B001E4KFG0", 5), ("#oc-R1", "B00813GRG4", 1)}, encoding="latin-1"),
    Format("amazon_fine_foods", "Reviews.csv", FOODS_CSV, {("A3", "B001", 4), ("A1", "B002", 1)}),
    Format("tencent", "rec_log_train.txt", LOG, {(2088948, 1774722, 1), (601635, 1774722, 1)}),
    Format("tencent", "rec_log_train.txt", LOG,
           {(2088948, 1760350, 1), (2088948, 1774722, 1), (601635, 1774722, 1)},
           {"rejected": True}, note="rejected"),
    Format("tencent", "user_action.txt", "1000004\t1000004\t0\t3\t4\n1000004\t1290320\t1\t0\t0\n",
           {(1000004, 1000004, 7), (1000004, 1290320, 1)}),
    Format("echonest", "train_triplets.txt",
           "b80344d063b5\tSOAKIMP12A8C130995\t1\nb80344d063b5\tSOBBMDR12A8C13253B\t12\n",
           {("b80344d063b5", "SOAKIMP12A8C130995", 1), ("b80344d063b5", "SOBBMDR12A8C13253B", 12)}),
    Format("bestbuy", "train.csv",
           "user,sku,category,query,click_time,query_time\n"
           '0001cd0d,2125233,abcat0101001,"Televisiones Panasonic, 50",2011-09-01,2011-09-01\n'
           '00033dbc,2009324,abcat0101001,"a ""b""",2011-09-12,2011-09-12\n'
           "0001cd0d,2125233,abcat0101001,Rca,2011-09-02,2011-09-02\n",
           {("0001cd0d", 2125233, 2), ("00033dbc", 2009324, 1)}),
    Format("lastfm", "user_artists.dat", "userID\tartistID\tweight\n2\t51\t13883\n2\t52\t11690\n",
           {(2, 51, 13883), (2, 52, 11690)}),
    Format("lastfm", "usersha1-artmbid-artname-plays.tsv",
           f'{SHA[0]}\t3bd73256\tbetty "blowtorch\t2137\n{SHA[1]}\t\tdie Ärzte\t1099\n'
           f"sep 20, 2008\tx\ty\t7\n{SHA[0]}\tf2fb0ff0\tbetty \"blowtorch\t3\n",
           {(SHA[0], 'betty "blowtorch', 2140), (SHA[1], "die Ärzte", 1099)}),
    Format("lastfm", "usersha1-artmbid-artname-plays.tsv",
           f"{SHA[0]}\t3bd73256\tbetty\t2137\n{SHA[1]}\t\tdie Ärzte\t1099\n",
           {(SHA[0], "3bd73256", 2137)}, {"artist": "mbid"}, note="mbid"),
    Format("steam", "steam-200k.csv", STEAM,
           {(151603712, "The Elder Scrolls V Skyrim", 273),
            (5250, "Half-Life 2, Episode One", 0.6)}),
    Format("steam", "steam-200k.csv", STEAM,
           {(151603712, "The Elder Scrolls V Skyrim", 1), (5250, "Half-Life 2, Episode One", 1)},
           {"behavior": "purchase"}, note="purchase"),
    Format("donorschoose", "donations.csv", DONATIONS_2014, {("a1", "p1", 60)}),
    Format("donorschoose", "opendata_donations.csv",
           "_donationid,_projectid,_donor_acctid,donation_total\nd1,p1,a1,50.00\nd2,p2,a2,7\n",
           {("a1", "p1", 50), ("a2", "p2", 7)}),
    Format("donorschoose", "opendata_donations000",
           ",".join([DONATION[0], DONATION[1], DONATION[0], *OPENDATA_ROW[3:]]) + "\n",
           {(DONATION[0], DONATION[1], 50)}),
    Format("donorschoose", "Donations.csv",
           "Project ID,Donation ID,Donor ID,Donation Included Optional Donation,Donation Amount\n"
           "p1,d1,a1,Yes,178.37\np1,d2,a2,No,25\n", {("a1", "p1", 178.37), ("a2", "p1", 25)},
           note="2018"),
    Format("donations", "gifts.csv",
           'Donor Name,Party,Gift amount\nAnn,Reds,"$1,200.50"\nBob,Blues,"£ 1,234,567"\n'
           ",Reds,7\nBob,Reds,-3\n",
           {("Ann", "Reds", 1200.5), ("Bob", "Blues", 1234567)}),
    Format("donations", "gifts.tsv", "who\twhom\tpaid\nAnn\tReds\t1\nAnn\tReds\t2\n",
           {("Ann", "Reds", 3)}, {"donor": "who", "recipient": "whom", "amount": "paid"}),
    Format("merck", "ACT1_competition_training.csv", MERCK,
           {("ACT1_M_80", "D_5", 2), ("ACT1_M_189", "D_4", 1), ("ACT1_M_189", "D_6", 11)}),
    Format("geuvadis", "GD462.GeneQuantRPKM.txt", GENES,
           {("ENSG00000152931.6", "HG00096", 0.101857770668185),
            ("ENSG00000183696.9", "HG00096", -8.1831), ("ENSG00000183696.9", "HG00097", 8.19)}),
]  # fmt: skip
