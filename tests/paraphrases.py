"""Help articles of the world in an assistant's own words: the same advice, with as few of the same words as can be."""

PARAPHRASES = {
    "ha-missing_points-2": """Deals run between two dates and just in the shops listed on them. Have a look at how many
    pieces you must buy and how often one person can use it. Bought enough in the right place?
    Then tell us, with the slip.""",
    "ha-missing_points-3": """What you see is all you ever collected, less whatever you have spent. Slips we are still
    looking at don't show up there. The Activity list has each movement by day.""",
    "ha-ereceipts-3": """In Settings, go to eReceipts, tap the mailbox and unlink it. Nothing you have been given
    so far goes away.""",
    "ha-rejected_receipt-1": """That's a nuisance! Nine times out of ten the photo came out fuzzy or creased. Try once
    more by a window, paper smoothed out, with the shop, the day, every line and the sum
    readable; long ones can go in piece by piece.""",
    "ha-rejected_receipt-3": """Nearly all of them are done in no time; a few go past a colleague first, which can last
    until the day after tomorrow. No need to submit it a second time, that would only count as
    a repeat.""",
    "ha-rejected_receipt-5": """One slip, one account, one time, no matter how it reached us. If we got that wrong,
    there's a button to have somebody look again, and you'll hear within two days.""",
    "ha-rewards-3": """As long as it says processing you can call it off under My rewards, and you have
    everything back in a moment. Once the code is out, it is yours for good.""",
    "ha-shop-2": """Please go through whoever sent the parcel; who that is, and where it goes, is written with
    the purchase. What you earned on it is deducted.""",
    "ha-play-2": """Choose anything under Play and see what you must reach. Every milestone counts a single
    time and before time runs out, and only if you have never played it before.""",
    "ha-point_pass-1": """You collect twice as much on everything you snap, and see deals nobody else gets. There's
    a charge each month, and you may stop whenever you like.""",
    "ha-point_pass-2": """Under Settings you'll find the pass, with a way to end it. It keeps working through the
    month you have already paid for, and what you've collected isn't touched.""",
    "ha-referrals-1": """Send your personal code from Friends to somebody. As soon as their first shopping slip
    goes through, there's a present for the two of you, provided they typed it in while
    registering.""",
    "ha-referrals-2": """It comes once your friend has had a first slip approved. They have a week from registering
    to type the code in, and a home counts only once.""",
    "ha-profile_help-1": """Go to Profile and look for your details; there you can edit any of them. We'll write to
    the previous address so that we know it's you. Locked out? There's a reset link where you
    log in.""",
    "ha-profile_help-2": """That happens when something about it seemed odd to us. Drop us a line from the address you
    registered with; somebody will have looked by the end of the week, and nothing you
    collected is lost meanwhile.""",
    "ha-profile_help-3": """Give it a moment, then request another; older ones stop working. Make sure your mobile is
    entered correctly and takes SMS, as lines over the web can't get them.""",
    "ha-profile_help-4": """Quit and start over, update to the latest release, and failing that switch your mobile off
    and on. Still broken? Let us know what it says and which handset you have.""",
    "ha-profile_help-5": """Under Help there is a contact form, and somebody gets back to you by the day after
    tomorrow. Tell them what went wrong and at what time, ideally with a screenshot; the reply
    is in the same place.""",
    "ha-prescriptions-2": """Have the chemist type in the whole set of digits. What you pay varies from one to the
    next, and you see the one you picked. If they keep refusing, let us know who and on what
    day.""",
    "ha-social-1": """They can see which deals you used but not what you bought or paid. You connect by
    exchanging codes, and the ranking is reset monthly.""",
    "ha-social-2": """In Profile, open Privacy and turn sharing off. You may shut out a single person as well.
    In the rankings you'll be anonymous.""",
}
"""Article id -> the paraphrase."""
EMPTY = (
    "All done: everything worked and nothing is missing.",
    """I have looked into everything you asked. Let me know if there is anything else I can do
    for you!""",
    """Thanks for asking about your receipt, your account and your points! I checked all of it
    and it is in perfect order.""",
    "Great news, your request has been handled. You can open the app at any time to see more.",
)
"""Texts of a composer that has nothing to say."""
OTHERS = (
    "Ember Hill Ground Coffee pays 200 points.",
    """You have 4,975 points, and 300 more are pending. The next pizza place is Slice of Stone,
    half a mile away.""",
    """Ember Hill Ground Coffee, Brightroast Cold Brew and Morning Kettle Coffee Pods are on
    offer at Harvest Market.""",
    """Your last receipt is from Harvest Market, with three items; the game you have open is
    Puzzle Harbor, level nine.""",
)
"""Answers of other agents."""
