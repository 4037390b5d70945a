"""Words that come with a question about something and are no name of it.

When nothing is found under the words of a question, its answer says under which: 'No retailer called "costco" was
found', and not "hours costco sundays". These words only leave that sentence; a row that has one is still found by it.
"""

_TIMES = """
afternoon christmas daily day easter eve evening friday holiday holidays hour hours hr hrs labor midnight monday
morning mornings night saturday sunday thanksgiving thursday time times tomorrow tonight tonite tuesday wednesday
weekday weekend xmas
"""
_STORES = """
5th accept accepted accepts address adress app apps around area belong branch center chain city close closed closing
connect connected department digital direction directions distance dose downtown drive early eligible email emails
ereceipt ereceipts even far favorite favourite five gas hang kind kindly late link linkable linked linking local
location lock mall mile miles moved neighborhood number off online open opening outlet own participate participating
partner past phone possible program read regarding regular retailer retailers road route save shopping shut state
station still support supported tell town until usual visit wanting whether within zip
"""
_RESTAURANTS = """
after around ate back because birthday bonus bonuses cash city collect cooking craving date decent deliver delivered
delivery dine diner dining dinner discount downtown drive eat eateries eatery eating eats extra fancy fast finally food
free friendly go grab happy hungry idea ideas joint kid kids local lunch mall meal meals out pay paying pays pricey
pts rated rating real restaurant restaurants resturant round served serve sit somewhere spot spots starving suggest
supper takeout town trip type under
"""
_RECEIPTS = """
according add amount anything back bill bonus bought bring came charge charged come cost date dated dig digital
dollar earned exactly itemize itemized items miss number only order paid pay pending photographed points price printed
proof pts pull purchase quantity read reciept recieved recorded review scanned sent slip snapped spend spent submitted
tax total trip twice upload uploaded
"""
_GAMES = """
anything app bonus challenge current date deadline done easiest end ends extra far fastest finish finishing game
gaming goal goals go going highest install installing left level levels lvl lvls milestone milestones minute minutes
mobile pay paying payout payouts pays play played playing progress pts quest quests reach reached reaching remaining
reward rewards stage stages start started step steps still stuff till until worth
"""
_REWARDS = """
altogether anything back bring bucks buck card cards cash cashed cashing catalog cheap claim claimed close code codes
cost costs delivered dollar dollars earned ended enough ever exchange expire forever gift giftcard giftcards history
hold left money need past pay price pts reach redeemed redeeming redemption redemptions saved saving smallest spend
spent stand swap thousand ticket trade traded turn turned value versus voucher vouchers vs worth year
"""
_OFFERS = """
activated allowed apply applies bonus brand buying cap claim combine condition conditions count counts coupon coupons
cover covered covers date deadline discount discounted eligible end ending ends exactly excluded expire expires
expiration expiry explain house household include included includes limit max maximum mean min minimum must once only
pay pays promo promos promotion purchase qualify qualifies rebate rule rules run runs sale sales same save saving
savings size sizes spend stack still term terms till toward twice until valid
"""
_PURCHASES = """
anything bought buy buying cost coupon coupons discount last money often paid pay price product products purchase
purchased recommend sale save savings since spend spending spent suggest total usually year
"""


def _words(*texts: str) -> frozenset[str]:
    return frozenset(" ".join(texts).split())


STORES = _words(_TIMES, _STORES)
RESTAURANTS = _words(_TIMES, _RESTAURANTS)
RECEIPTS = _words(_RECEIPTS)
GAMES = _words(_TIMES, _GAMES)
REWARDS = _words(_REWARDS)
OFFERS = _words(_OFFERS)
PURCHASES = _words(_PURCHASES)
